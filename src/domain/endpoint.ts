// Endpoints: where a tenant has callbacks sent. Pure: names, secrets and how those are sealed.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { isOldSeal, open, type SecretKeys, seal } from "./sealed.ts";

/** How long a callback is tried again. */
export const POLICIES = ["best_effort", "aggressive", "persistent"] as const;
export type CallbackPolicy = (typeof POLICIES)[number];

/** What is kept in order: callbacks about one notification, about one user, or all of an endpoint. */
export const FIFO_KEYS = ["notification", "user", "endpoint"] as const;
export type FifoKey = (typeof FIFO_KEYS)[number];

export const ENDPOINT_STATES = ["active", "paused", "disabled"] as const;
export type EndpointState = (typeof ENDPOINT_STATES)[number];

/** Every tenant's own endpoint, for the URLs that its requests name. */
export const REQUESTS = "requests";
export const ENDPOINT_ID = "^(requests|ep_[0-9a-f]{24})$";
export const newEndpointId = (): string => `ep_${randomBytes(12).toString("hex")}`;

/** What signs: `whsec_` with 32 bytes for `v1`, `whsk_` with seed and public key of ed25519 for `v1a`, both in base64. */
export type EndpointSecrets = { secret: string; privateKey: string };

const SECRET = "whsec_";
const PRIVATE = "whsk_";
const PUBLIC = "whpk_";
const SEED_BYTES = 32;
/** What stands before the 32 bytes of a seed in DER. */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

export function newSecrets(): EndpointSecrets {
  const { d = "", x = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const pair = Buffer.concat([Buffer.from(d, "base64url"), Buffer.from(x, "base64url")]);
  return {
    secret: SECRET + randomBytes(32).toString("base64"),
    privateKey: PRIVATE + pair.toString("base64"),
  };
}

/** `whsk_…` as what signs. */
export function signingKeyOf(privateKey: string): KeyObject {
  const seed = Buffer.from(privateKey.slice(PRIVATE.length), "base64").subarray(0, SEED_BYTES);
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
}

/** `whpk_…`, for whoever verifies and should not be able to sign. */
export function publicKeyOf({ privateKey }: EndpointSecrets): string {
  const { x = "" } = createPublicKey(signingKeyOf(privateKey)).export({ format: "jwk" });
  return PUBLIC + Buffer.from(x, "base64url").toString("base64");
}

type Place = { tenant: number; id: string };
export type SealedSecrets = Place & { sealed: string; previousSealed: string | null; previousUntil: Date | null };

const placeOf = ({ tenant, id }: Place): string => `${tenant} ${id}`;

export const sealSecrets = (keys: SecretKeys, place: Place, secrets: EndpointSecrets): string =>
  seal(keys, placeOf(place), JSON.stringify(secrets));

/** All that sign at that instant, the newest first; undefined when what is sealed cannot be opened with these keys. */
export function openSecrets(keys: SecretKeys, row: SealedSecrets, now: Date): EndpointSecrets[] | undefined {
  const read = (sealed: string): EndpointSecrets | undefined => {
    const plain = open(keys, placeOf(row), sealed);
    return plain === undefined ? undefined : (JSON.parse(plain) as EndpointSecrets);
  };
  const { sealed, previousSealed, previousUntil } = row;
  const isBoth = previousSealed !== null && previousUntil !== null && previousUntil > now;
  const [newest, before] = [read(sealed), isBoth ? read(previousSealed) : undefined];
  if (!newest || (isBoth && !before)) return undefined;
  return before ? [newest, before] : [newest];
}

/** The same, sealed with the first of the keys, where it was sealed with another of them; else undefined. */
export function resealed(keys: SecretKeys, place: Place, sealed: string): string | undefined {
  if (!isOldSeal(keys, sealed)) return undefined;
  const plain = open(keys, placeOf(place), sealed);
  return plain === undefined ? undefined : seal(keys, placeOf(place), plain);
}
