// Endpoints: made, changed, paused, resumed, rotated and deleted by their tenants. What is changed here holds for callbacks that begin from then on.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { type Action, digestOf } from "#domain/audit.ts";
import { newEndpointId, newSecrets, publicKeyOf, REQUESTS, sealSecrets } from "#domain/endpoint.ts";
import {
  type EndpointChange,
  type EndpointRequest,
  faultsOfChange,
  faultsOfEndpoint,
} from "#domain/endpoint-request.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { hurry } from "#queue/postgres/lines.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import {
  countEndpointsAlone,
  deleteEndpoint,
  type EndpointRow,
  insertEndpoint,
  lockEndpoint,
  rotateSecrets,
  setEndpointState,
  updateEndpoint,
} from "#store/endpoints.ts";
import { ensureRequestsEndpoint } from "#store/requests-endpoint.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import type { PublicHttp } from "#wire/public-only.ts";

export type EndpointWorld = {
  pool: pg.Pool;
  http: Pick<PublicHttp, "refusalOf">;
  secretKeys: SecretKeys;
};

/** `secret` is shown when it is made, and never again. */
export type SecretEndpoint = EndpointRow & { secret: string };

/** Besides the built-in one. */
export const MOST_ENDPOINTS = 50;
const DAY_SECONDS = 86_400;
const MOST_HURRIED = 1_000;

const noSuch = (id: string) => new Problem("NOT_FOUND", `there is no endpoint ${id}`);

export async function makeEndpoint(
  { pool, http, secretKeys }: EndpointWorld,
  actor: KeyActor,
  given: EndpointRequest,
): Promise<SecretEndpoint | Problem> {
  const { tenant } = actor;
  const faults = faultsOfEndpoint(given, http.refusalOf);
  if (faults.length > 0) return invalid(faults);
  const { url, events, policy = "best_effort", fifo, rate, description } = given;
  const place = { tenant, id: newEndpointId() };
  const made = await madeSecrets(pool, secretKeys, place);
  return inTransaction(pool, async (tx) => {
    if ((await countEndpointsAlone(tx, tenant)) >= MOST_ENDPOINTS) {
      return new Problem("TOO_MANY_ENDPOINTS", `a tenant has ${MOST_ENDPOINTS} endpoints at most`);
    }
    const endpoint = await insertEndpoint(tx, {
      ...place,
      url,
      events: events ? [...new Set(events)] : null,
      policy,
      fifo: fifo ?? null,
      rate: rate ?? null,
      description: description ?? null,
      ...made.kept,
    });
    if (!endpoint) throw new Error("a new endpoint's id was taken");
    await writeAudit(tx, actor, { action: "endpoint.create", object: objectOf(endpoint), after: shown(endpoint) });
    return { ...endpoint, secret: made.secret };
  });
}

/** What is not named stays; null takes back what was said. */
export async function changeEndpoint(
  world: EndpointWorld,
  actor: KeyActor,
  id: string,
  change: EndpointChange,
): Promise<EndpointRow | Problem> {
  const faults = faultsOfChange(id, change, world.http.refusalOf);
  if (faults.length > 0) return invalid(faults);
  const { events, ...rest } = change;
  return changing(world, actor, "endpoint.change", id, (tx, known) =>
    updateEndpoint(tx, known, {
      ...known,
      ...rest,
      ...(events !== undefined && { events: events && [...new Set(events)] }),
    }),
  );
}

/** Nothing more is sent to it. What happens meanwhile waits for it. */
export const pauseEndpoint = (
  world: EndpointWorld,
  actor: KeyActor,
  id: string,
  reason: string,
): Promise<EndpointRow | Problem> =>
  changing(world, actor, "endpoint.pause", id, (tx, known) => setEndpointState(tx, known, "paused", reason));

/** Also one that was disabled: it has its time to succeed again. What waited for it goes now, the rest of it when the first has succeeded. */
export const resumeEndpoint = (world: EndpointWorld, actor: KeyActor, id: string): Promise<EndpointRow | Problem> =>
  changing(world, actor, "endpoint.resume", id, async (tx, known) => {
    const resumed = await setEndpointState(tx, known, "active", null);
    await hurry(tx, actor.tenant, id, MOST_HURRIED);
    return resumed;
  });

/** Those before go on signing beside the new ones for as long. */
export async function rotateEndpoint(
  world: EndpointWorld,
  actor: KeyActor,
  id: string,
  keepSeconds: number = DAY_SECONDS,
): Promise<SecretEndpoint | Problem> {
  const made = await madeSecrets(world.pool, world.secretKeys, { tenant: actor.tenant, id });
  const rotated = await changing(world, actor, "endpoint.rotate", id, (tx, known) =>
    rotateSecrets(tx, known, made.kept, keepSeconds),
  );
  return rotated instanceof Problem ? rotated : { ...rotated, secret: made.secret };
}

/** With it goes what waits for it, as dead letters. */
export async function removeEndpoint(
  { pool }: Pick<EndpointWorld, "pool">,
  actor: KeyActor,
  id: string,
): Promise<Problem | undefined> {
  if (id === REQUESTS) return new Problem("METHOD_NOT_ALLOWED", "it is for the URLs of requests: pause it instead");
  return inTransaction(pool, async (tx) => {
    const known = await lockEndpoint(tx, actor.tenant, id);
    if (!known || !(await deleteEndpoint(tx, actor.tenant, id))) return noSuch(id);
    await writeAudit(tx, actor, { action: "endpoint.delete", object: objectOf(known), before: shown(known) });
    return undefined;
  });
}

/** The built-in one is there as soon as somebody changes something about it. */
async function changing(
  { pool, secretKeys }: EndpointWorld,
  actor: KeyActor,
  action: Action,
  id: string,
  change: (tx: Queryable, known: EndpointRow) => Promise<EndpointRow | undefined>,
): Promise<EndpointRow | Problem> {
  const { tenant } = actor;
  if (id === REQUESTS) await ensureRequestsEndpoint(pool, await readEndpointKeys(pool, secretKeys), tenant);
  return inTransaction(pool, async (tx) => {
    const known = await lockEndpoint(tx, tenant, id);
    const changed = known && (await change(tx, known));
    if (!changed) return noSuch(id);
    await writeAudit(tx, actor, { action, object: objectOf(known), before: shown(known), after: shown(changed) });
    return changed;
  });
}

const objectOf = ({ id }: EndpointRow) => ({ kind: "endpoint", name: id });

/** What comes after its origin may be a secret of the receiver's: the log tells whether it is another. */
const shown = ({ url, events, policy, fifo, rate, description, state, reason, publicKey }: EndpointRow) => ({
  ...{ events, policy, fifo, rate, description, state, reason, publicKey },
  ...(url !== null && { origin: new URL(url).origin, url: digestOf(url) }),
});

async function madeSecrets(pool: pg.Pool, secretKeys: SecretKeys, place: { tenant: number; id: string }) {
  const secrets = newSecrets();
  const sealed = sealSecrets(await readEndpointKeys(pool, secretKeys), place, secrets);
  return { secret: secrets.secret, kept: { sealed, publicKey: publicKeyOf(secrets) } };
}
