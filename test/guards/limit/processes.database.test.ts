// Three workers as processes of their own, killed again and again: together they keep to limits that none of them knows the use of.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { burstOf, intervalMs, type Rate } from "#domain/gcra.ts";
import { freshDatabase } from "../../support/postgres.ts";
import { sandboxFor } from "../../support/process.ts";
import { until } from "../../support/until.ts";

// Bursts such that each of the three is what holds them back for a third of the time.
const RATES: Rate[] = [
  { per: "second", most: 10 },
  { per: "minute", most: 300, burst: 40 },
  { per: "hour", most: 1000, burst: 100 },
];
/** On a machine with nothing else to do, what the limits allow in some 15 s. */
const SENDS = 95;
/** From the grant to the provider's log, for the slowest against the quickest. */
const JITTER_MS = 1_500;

test("no window of any limit is exceeded by three processes that are killed, and what is allowed is used", {
  timeout: 300_000,
}, async (t) => {
  const database = await freshDatabase();
  t.after(database.drop);
  const sandbox = await sandboxFor(t);
  const log = join(sandbox.directory, "sent.jsonl");
  const env = {
    DATABASE_URL: database.url,
    CARILLON_PROVIDERS: JSON.stringify({ carrier: { type: "test", log } }),
    CARILLON_ROUTES: JSON.stringify({ email: "carrier" }),
    CARILLON_LIMITS: JSON.stringify({ providers: { carrier: { account: RATES } } }),
    CARILLON_LEASE_MS: "1000",
    CARILLON_SWEEP_MS: "100",
    CARILLON_LOG_LEVEL: "warn",
  };
  const api = await sandbox.start({ ...env, CARILLON_ROLES: "api,scheduler,keeper" });
  const workerEnv = { ...env, CARILLON_ROLES: "worker" };
  const workers = await Promise.all([1, 2, 3].map(() => sandbox.start(workerEnv)));

  const notifications = Array.from({ length: 400 }, (_, n) => ({
    channel: "email",
    recipient: { email: `u${n}@b.co` },
    content: { subject: "s", textBody: "t" },
  }));
  const { status } = await api.ask("POST", "/v1/notifications/batch", { notifications });
  assert.ok(status < 300);
  const lines = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
  const sentSoFar = (least: number) => until(async () => (lines().length >= least ? true : undefined), 120_000);
  for (let kill = 0; kill < 4; kill++) {
    await sentSoFar(20 * (kill + 1));
    await workers[kill % 3]?.end("SIGKILL");
    workers[kill % 3] = await sandbox.start(workerEnv);
  }
  await sentSoFar(SENDS);

  const sent = lines()
    .map((line) => JSON.parse(line) as { at: number; pid: number; id: string })
    .sort((a, b) => a.at - b.at);
  for (const rate of RATES) {
    for (let i = 0; i < sent.length; i++) {
      for (let j = i; j < sent.length; j++) {
        const passed = (sent[j]?.at ?? 0) - (sent[i]?.at ?? 0);
        const most = burstOf(rate) + (passed + JITTER_MS) / intervalMs(rate);
        assert.ok(j - i + 1 <= most, `${j - i + 1} in ${passed} ms, ${most} may be by the limit per ${rate.per}`);
      }
    }
  }
  assert.ok(new Set(sent.map(({ pid }) => pid)).size >= 3, "several processes have sent");
});
