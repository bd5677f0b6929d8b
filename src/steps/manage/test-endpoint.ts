// Posts a test to an endpoint, once and at once, and says what the receiver answered. It goes past the queue: who sets up a receiver waits for
// this one answer, also while the endpoint is paused or disabled.

import type { KeyActor } from "#domain/actor.ts";
import { openSecrets, REQUESTS } from "#domain/endpoint.ts";
import { faultsOfUrl } from "#domain/endpoint-request.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { beginningOf } from "#domain/said.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import type { Clock } from "#store/connection/clock.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findEndpoint } from "#store/endpoints.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import type { PublicHttp } from "#wire/public-only.ts";
import { signingKeysOf, signWebhook } from "#wire/standard-webhooks.ts";

export type TestWorld = {
  pool: Queryable;
  http: PublicHttp;
  secretKeys: SecretKeys;
  newId: () => string;
  clock: Pick<Clock, "now" | "trueMs">;
  monotonic: () => number;
};

/** `status` and `body` are the receiver's, `error` says why there was no answer to show. */
export type Tested = {
  webhookId: string;
  isDelivered: boolean;
  latencyMs: number;
  status?: number;
  body?: string;
  error?: string;
};

const TIMEOUT_MS = 10_000;

/** `url` is for the built-in endpoint, which has none of its own. */
export async function testEndpoint(
  { pool, http, secretKeys, newId, clock, monotonic }: TestWorld,
  { tenant }: KeyActor,
  id: string,
  url?: string,
): Promise<Tested | Problem> {
  const endpoint = await findEndpoint(pool, tenant, id);
  if (!endpoint) return new Problem("NOT_FOUND", `there is no endpoint ${id}`);
  if (url !== undefined && id !== REQUESTS) return invalid([{ path: "/url", message: "is the endpoint's own" }]);
  const to = endpoint.url ?? url;
  if (to === undefined) return invalid([{ path: "/url", message: "is required" }]);
  const faults = faultsOfUrl(to, http.refusalOf);
  if (faults.length > 0) return invalid(faults);
  const secrets = openSecrets(await readEndpointKeys(pool, secretKeys), endpoint, clock.now());
  if (!secrets)
    return new Problem("NOT_CONFIGURED", "its secrets are sealed with a key that CARILLON_SECRET_KEYS has not");
  const webhookId = `msg_${newId().replaceAll("-", "")}`;
  // Whoever verifies it goes by the true time.
  const at = clock.trueMs();
  const timestamp = new Date(at).toISOString();
  const body = JSON.stringify({ type: "endpoint.test", timestamp, data: { endpointId: id } });
  const signed = signWebhook({ id: webhookId, at, body }, signingKeysOf(secrets));
  const startedAt = monotonic();
  const answer = await http.ask({
    url: to,
    headers: { "content-type": "application/json", ...signed },
    body,
    timeoutMs: TIMEOUT_MS,
    signal: AbortSignal.timeout(2 * TIMEOUT_MS),
  });
  const tested = { webhookId, latencyMs: Math.round(monotonic() - startedAt) };
  if ("kind" in answer) return { ...tested, isDelivered: false, error: answer.reason };
  const { status, text } = answer;
  return { ...tested, isDelivered: status >= 200 && status < 300, status, body: beginningOf(text) };
}
