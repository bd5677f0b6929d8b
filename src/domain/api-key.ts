// API keys: `ck_<id>_<secret>`. The id finds the key, the hash of the whole proves it.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

export const SCOPES = ["send", "read", "admin"] as const;
export type Scope = (typeof SCOPES)[number];
/** `any`: whoever has a key at all. */
export type Needed = Scope | "any";

const FORM = /^ck_([a-z0-9]{12})_[a-z0-9]{48}$/;

export function newKey(): { id: string; key: string; hash: Buffer } {
  const id = randomBytes(6).toString("hex");
  const key = `ck_${id}_${randomBytes(24).toString("hex")}`;
  return { id, key, hash: hashOf(key) };
}

/** The id of a key, or undefined when the text is not of a key's form. */
export const idOfKey = (key: string): string | undefined => FORM.exec(key)?.[1];

/** The secret has 192 random bits: a plain hash is as good as a slow one and costs a microsecond. */
export const hashOf = (key: string): Buffer => createHash("sha256").update(key).digest();

export const isSameHash = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** Who may administer may do everything else too. */
export const allows = (scopes: readonly string[], needed: Needed): boolean =>
  needed === "any" || scopes.includes(needed) || scopes.includes("admin");
