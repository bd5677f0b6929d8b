// Callbacks: everybody who asked is told of each fact, under one id, signed, in line where asked, and not again after its end.
//
// Which callbacks there must be follows from the record of notifications and from what was asked for; which there were, from what the
// receivers got. What the product wrote of callbacks themselves says only how each ended, and when.

import { createHmac, createPublicKey, verify } from "node:crypto";
import { type Callback, callbackOf } from "#domain/callback.ts";
import { DEFAULT_EVENTS } from "#domain/calls.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import { ENDINGS } from "#domain/status.ts";
import {
  type CalledEndpoint,
  type Check,
  type EventRow,
  type Fault,
  groupBy,
  type History,
  type NotificationRow,
  type Post,
  type Report,
} from "../history.ts";
import { typeOf } from "./feed.ts";
import { oneHolder, staleIsPowerless } from "./leases.ts";

/** One that was made. `key`: what it is about, and to whom; two facts of one attempt may share it. */
type Made = { row: NotificationRow; callback: Callback; key: string; last: EventRow | undefined };
type Fact = { endpoint: CalledEndpoint; key: string };

export const calledBack: Check = {
  guarantee: "G22",
  promise:
    "each fact is called back to all who asked, or is a dead letter: one id for all tries, signed, first in first out where asked, nothing after its end",
  run(history, report) {
    const asked = askedOf(history);
    const made = madeOf(history);
    for (const { run } of [oneHolder, staleIsPowerless]) {
      run({ ...history, ...history.callbacks, sends: [], calls: [] }, report);
    }
    const { waiting } = history.callbacks;
    if (waiting.length > 0) report("callbacks are left waiting", `${waiting.length}: ${waiting[0]?.id}`);
    checkTold(asked, made, history.posts, report);
    checkEndings(made, history.posts, report);
    checkPosts(history, report);
    checkLate(made, history, report);
    checkLines(asked, made, history.posts, report);
  },
};

const keyOf = (path: string, id: unknown, type: string, attempt: unknown) => `${path} ${id} ${type} ${attempt ?? "-"}`;

const keyOfBody = (path: string, type: string, { notificationId, attempt }: Callback["data"]) =>
  keyOf(path, notificationId, type.replace(/^notification\./, ""), attempt);

/** In the order of the feed. */
function askedOf({ tenants, notifications, events, endpoints, feeds }: History): Fact[] {
  const names = new Map(tenants.map(({ id, name }) => [id, name]));
  const rows = new Map(notifications.map((row) => [row.id, row]));
  const recorded = new Map(events.map((event) => [`${event.id}:${event.number}`, event]));
  const places = new Map(
    Object.values(feeds)
      .flat()
      .map(({ id }, n) => [id, n]),
  );
  const facts = [
    ...notifications.map(({ id, tenant }) => ({ tenant, id, fact: `${id}:0`, type: "accepted", attempt: null })),
    ...[...recorded]
      .filter(([, { type, id }]) => type !== "accepted" && rows.has(id))
      .map(([fact, event]) => ({
        ...{ tenant: rows.get(event.id)?.tenant ?? 0, id: event.id, fact },
        ...{ type: typeOf(event), attempt: event.attempt },
      })),
  ].sort((a, b) => (places.get(a.fact) ?? 0) - (places.get(b.fact) ?? 0));
  return facts.flatMap(({ tenant, id, type, attempt }) =>
    endpoints
      .filter((endpoint) => endpoint.tenant === names.get(tenant) && isAsked(endpoint, rows.get(id), type))
      .map((endpoint) => ({ endpoint, key: keyOf(endpoint.path, id, type, attempt) })),
  );
}

function isAsked({ id, events }: CalledEndpoint, row: NotificationRow | undefined, type: string): boolean {
  if (id !== REQUESTS) return events?.includes(type) ?? true;
  const { callbackUrl, callbackEvents = DEFAULT_EVENTS } = row?.request ?? {};
  return callbackUrl !== undefined && callbackEvents.some((one) => one === type);
}

function madeOf({ tenants, callbacks, endpoints }: History): Made[] {
  const names = new Map(tenants.map(({ id, name }) => [id, name]));
  const events = groupBy(callbacks.events, ({ id }) => id);
  const paths = new Map(endpoints.map(({ tenant, id, path }) => [`${tenant} ${id}`, path]));
  return callbacks.notifications.flatMap((row) => {
    const callback = callbackOf(row.request);
    if (!callback) return [];
    const path = paths.get(`${names.get(-row.tenant)} ${callback.endpoint}`) ?? "";
    const key = keyOfBody(path, callback.type, callback.data);
    return [{ row, callback, key, last: events.get(row.id)?.at(-1) }];
  });
}

/** What was delivered or given up, and under how many ids. */
function checkTold(asked: Fact[], made: Made[], posts: Post[], report: Report): void {
  const told = new Map<string, Set<string>>();
  const came = new Map<string, Set<string>>();
  const add = (map: Map<string, Set<string>>, key: string, id: string) =>
    map.set(key, (map.get(key) ?? new Set()).add(id));
  for (const { path, id, body, status } of posts) {
    const { type, data } = JSON.parse(body) as Callback;
    const key = keyOfBody(path, type, data);
    add(came, key, id);
    if (status >= 200 && status < 300) add(told, key, id);
  }
  for (const { row, callback, key } of made) if (row.status === "failed") add(told, key, callback.webhookId);
  const expected = groupBy(asked, ({ key }) => key);
  for (const [key, { length }] of expected) {
    if ((told.get(key)?.size ?? 0) < length) report("a fact was never called back", key);
    if ((came.get(key)?.size ?? 0) > length)
      report("called back under another id", `${key}: ${[...(came.get(key) ?? [])]}`);
  }
  for (const key of came.keys()) if (!expected.has(key)) report("called back about what nobody asked for", key);
}

function checkEndings(made: Made[], posts: Post[], report: Report): void {
  const taken = new Set(posts.filter(({ status }) => status >= 200 && status < 300).map(({ id }) => id));
  for (const { row, callback, last } of made) {
    const name = `${callback.webhookId}, ${row.status} after attempt ${last?.attempt}: ${last?.outcome}`;
    if (row.status === "sent" && !taken.has(callback.webhookId))
      report("recorded as delivered, but nobody took it", name);
    const isSpent = (last?.attempt ?? 0) >= (row.request.retryPolicy?.maxAttempts ?? 0);
    if (row.status === "failed" && last?.outcome !== "rejected" && !isSpent)
      report("a callback was given up early", name);
  }
  for (const [id, same] of groupBy(made, ({ callback }) => callback.webhookId)) {
    if (same.length > 1) report("a callback was made twice", `${id}: ${same.map(({ row }) => row.id)}`);
  }
}

/** Between the clocks of a worker and of a receiver, and the second that a timestamp is cut to. */
const CLOCKS_MS = 2_000;
/** A try takes no longer, however busy the machine is and for how long it was frozen. */
const TRY_MS = 60_000;

function checkPosts({ posts, endpoints }: History, report: Report): void {
  const byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]));
  for (const post of posts) {
    const endpoint = byPath.get(post.path);
    const name = `${post.id} at ${post.path}`;
    if (!endpoint || !isSigned(post, endpoint)) report("a signature is not over id, timestamp and body", name);
    const agoMs = post.at - Number(post.timestamp) * 1000;
    if (!(agoMs > -CLOCKS_MS && agoMs < TRY_MS))
      report("signed with another time than its try's", `${name}: ${agoMs} ms`);
  }
  for (const [id, same] of groupBy(posts, (post) => post.id)) {
    if (new Set(same.map(({ path, body }) => `${path} ${body}`)).size > 1) report("one id for two callbacks", id);
  }
}

/** With `v1` and with `v1a`. */
function isSigned({ id, timestamp, signature, body }: Post, { secret, publicKey }: CalledEndpoint): boolean {
  const signed = Buffer.from(`${id}.${timestamp}.${body}`);
  const bytesOf = (key: string) => Buffer.from(key.replace(/^wh(sec|pk)_/, ""), "base64");
  const hmac = createHmac("sha256", bytesOf(secret)).update(signed).digest("base64");
  const jwk = { kty: "OKP", crv: "Ed25519", x: bytesOf(publicKey).toString("base64url") };
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const signatures = signature.split(" ").map((one) => one.split(",") as [string, string]);
  return (
    signatures.some(([version, text]) => version === "v1" && text === hmac) &&
    signatures.some(([version, text]) => version === "v1a" && verify(null, signed, key, Buffer.from(text, "base64")))
  );
}

/** What a process was doing when it was stopped it goes on with afterwards, before it can know better. */
const STOPS = ["freeze worker", "blackhole", "hold"];
const WAKES_MS = 3_000;

/** By the second in which a try was signed: how long it then was under way is nobody's fault. */
function checkLate(made: Made[], { posts, faults, settings }: History, report: Report): void {
  const ends = endsOf(made);
  const stops = faults.filter(({ kind }) => STOPS.includes(kind));
  const wasStopped = (at: number) =>
    stops.some((one: Fault) => one.at < at + 1_000 && at < (one.until ?? one.at) + WAKES_MS);
  for (const { id, timestamp, path } of posts) {
    const signedAt = Number(timestamp) * 1000;
    const lateMs = Math.round(signedAt - (ends.get(id) ?? Number.POSITIVE_INFINITY));
    if (lateMs <= settings.sendTimeoutMs + CLOCKS_MS || wasStopped(signedAt)) continue;
    report("posted after its end", `${id} at ${path}: ${lateMs} ms after it had ended`);
  }
}

const ENDS: ReadonlySet<string> = new Set(ENDINGS);

/** Of those that were made twice, the first. */
function endsOf(made: Made[]): Map<string, number> {
  const ends = new Map<string, number>();
  for (const { callback, last } of made) {
    if (!last || !ENDS.has(last.to)) continue;
    ends.set(callback.webhookId, Math.min(last.at, ends.get(callback.webhookId) ?? last.at));
  }
  return ends;
}

/** A receiver's clock cuts off what the database keeps of a millisecond. */
const CLOCK_MS = 2;

function checkLines(asked: Fact[], made: Made[], posts: Post[], report: Report): void {
  const ends = endsOf(made);
  const ids = new Map(made.map(({ key, callback }) => [key, callback.webhookId]));
  const postsOf = groupBy(posts, ({ id }) => id);
  const lined = asked.filter(({ endpoint }) => endpoint.fifo !== null);
  const lines = groupBy(lined, ({ endpoint, key }) =>
    endpoint.fifo === "endpoint" ? endpoint.path : key.split(" ").slice(0, 2).join(" "),
  );
  for (const [line, facts] of lines) {
    for (const [n, { key }] of facts.entries()) {
      const before = ids.get(facts[n - 1]?.key ?? "");
      if (before === undefined) continue;
      const endedAt = ends.get(before) ?? Number.POSITIVE_INFINITY;
      const early = (postsOf.get(ids.get(key) ?? "") ?? []).find(({ at }) => at + CLOCK_MS < endedAt);
      if (early) report("posted before the one before it in line had ended", `${line}: ${key}, after ${before}`);
    }
  }
}
