// What a worker knows of tenants' endpoints: looked up for a whole claim at once, and again before a send that waited for its turn, so that
// it goes where the endpoint leads at that moment, signed by the secrets that it has then.
//
// State: those that were looked up lately. When there are too many, the older half is looked up again.

import type { Message } from "#channels/channel.ts";
import { callbackOf } from "#domain/callback.ts";
import { openSecrets } from "#domain/endpoint.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type EndpointRow, findEndpointsNamed } from "#store/endpoints.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";
import { type SigningKeys, signingKeysOf } from "#wire/standard-webhooks.ts";
import type { Endpoint } from "./endpoint.ts";

export type EndpointName = { tenant: number; id: string };
type Known = { readAt: number; endpoint: Endpoint | undefined; row: EndpointRow | undefined };

const FRESH_MS = 500;
const MOST_KNOWN = 10_000;

export class Endpoints {
  readonly #secretKeys: SecretKeys;
  readonly #monotonic: () => number;
  readonly #now: () => Date;
  readonly #looks: GroupCommit<EndpointName, Endpoint | undefined>;
  #known = new Map<string, Known>();
  #knownBefore = new Map<string, Known>();

  constructor(db: Queryable, secretKeys: SecretKeys, monotonic: () => number, now: () => Date) {
    this.#secretKeys = secretKeys;
    this.#monotonic = monotonic;
    this.#now = now;
    this.#looks = createGroupCommit({
      abreast: 1,
      maxWaitingRows: Number.POSITIVE_INFINITY,
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      commit: (names) => this.#look(db, names),
    });
  }

  /** As it was no earlier than `since`; undefined where there is none. Rejects when the database does not answer. */
  find(name: EndpointName, since = this.#monotonic() - FRESH_MS): Endpoint | undefined | Promise<Endpoint | undefined> {
    const known = this.#known.get(keyOf(name));
    if (known && known.readAt >= since) return known.endpoint;
    return this.#looks.submitOne(name, 0);
  }

  /** As it was found last: for a send that was let through a moment ago, when it was found. */
  known(name: EndpointName): Endpoint | undefined {
    const key = keyOf(name);
    return (this.#known.get(key) ?? this.#knownBefore.get(key))?.endpoint;
  }

  async #look(db: Queryable, names: readonly EndpointName[]): Promise<(Endpoint | undefined)[]> {
    const readAt = this.#monotonic();
    const wanted = [...new Map(names.map((name) => [keyOf(name), name])).values()];
    const rows = new Map((await findEndpointsNamed(db, wanted)).map((row) => [keyOf(row), row]));
    for (const name of wanted) this.#keep(keyOf(name), rows.get(keyOf(name)), readAt);
    return names.map((name) => this.#known.get(keyOf(name))?.endpoint);
  }

  #keep(key: string, row: EndpointRow | undefined, readAt: number): void {
    const before = this.#known.get(key) ?? this.#knownBefore.get(key);
    const endpoint = row && { ...row, keys: this.#keysOf(row, before) };
    this.#known.set(key, { readAt, row, endpoint });
    if (this.#known.size <= MOST_KNOWN) return;
    this.#knownBefore = this.#known;
    this.#known = new Map();
  }

  /** Opened anew only when there are others, or one has had its time. */
  #keysOf(row: EndpointRow, before: Known | undefined): SigningKeys | undefined {
    const isPast = (one: EndpointRow) => one.previousUntil !== null && one.previousUntil <= this.#now();
    const isSame =
      before?.row?.sealed === row.sealed && before.row.previousSealed === row.previousSealed && !isPast(row);
    if (isSame) return before.endpoint?.keys;
    const secrets = openSecrets(this.#secretKeys, row, this.#now());
    return secrets && signingKeysOf(secrets);
  }
}

/** Whose a callback is, by its tenant under a minus. Undefined for what is none. */
export function nameOf({ tenant, request }: Pick<Message, "tenant" | "request">): EndpointName | undefined {
  const callback = callbackOf(request);
  return callback && { tenant: -tenant, id: callback.endpoint };
}

const keyOf = ({ tenant, id }: EndpointName): string => `${tenant} ${id}`;
