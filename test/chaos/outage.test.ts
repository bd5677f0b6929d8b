// The database goes away, hangs and comes back, and the process is asked to stop, all under load: whoever got a
// 2xx is kept, everybody else is told so in time, and nobody has to restart anything.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { assertKept, countStored, type Load, readStored, seeded, startLoad } from "../support/load.ts";
import { controllableServer, freshDatabase } from "../support/postgres.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";
import { ADMIN_KEY, type Answered, email } from "../support/service.ts";

const SENDERS = 20;
/** The database has 10 s for a statement before it counts as away; the rest is for a machine that has other things to do. Nothing else ends what hangs. */
const LONGEST_ANSWER_MS = 120_000;
const LONGEST_HEALING_MS = 120_000;
/** What it may wait for slow requests; where none is slow, it takes less. */
const DRAIN_MS = 240_000;
const LONGEST_STOP_MS = DRAIN_MS / 2;
/** A process that stops waits this long for the next request on a connection. */
const IDLE_KEPT_MS = 1_000;

describe("an outage of the database", { concurrency: true }, () => {
  for (const how of ["fast", "immediate"] as const) {
    const title = `loses nothing acknowledged and needs no restart: a stop (${how}) and a start, 3 rounds`;
    test(title, { timeout: 300_000 }, async (t) => {
      const server = await controllableServer();
      t.after(() => server.remove());
      const service = await (await sandboxFor(t)).start({ DATABASE_URL: server.url });
      const load = startLoad({ ask: service.ask, senders: SENDERS, random: seeded(1), name: how });

      for (let round = 0; round < 3; round++) {
        await acknowledge(load, 200);
        await server.stop(how);
        const awayAt = performance.now();
        let refused = 0;
        await load.until((latest) => latest !== undefined && latest.startedAt > awayAt && ++refused >= 50);
        await assertAway(service, server.url);
        const endsAt = performance.now();
        for (const { startedAt, answer } of load.outcomes) {
          if (startedAt > awayAt && startedAt < endsAt) assertRefusal(answer, ["DATABASE_UNAVAILABLE"]);
        }

        await server.start();
        await assertHealing(service, load);
      }
      await load.stop();
      assertAnswers(load, ["DATABASE_UNAVAILABLE"]);
      await assertNothingLost(t, service, server.url, load);
    });
  }

  const title = "is answered in time and with bounded memory when the database hangs, and is over when it goes on";
  test(title, { timeout: 300_000 }, async (t) => {
    const server = await controllableServer();
    // Hooks run in the order in which they were made, and a server that hangs cannot be removed.
    let resume = (): void => {};
    t.after(() => resume());
    t.after(() => server.remove());
    const most = 6_000;
    const service = await (await sandboxFor(t)).start({
      DATABASE_URL: server.url,
      CARILLON_ACCEPT_MAX_WAITING: String(most),
    });
    const load = startLoad({ ask: service.ask, senders: SENDERS, random: seeded(1), name: "hang" });
    await acknowledge(load, 200);
    resume = await suspend(server.url);
    const stopped = load.stop();

    // Twice as many as may wait, in portions as large as one commit, and then a few by themselves.
    const thousand = { notifications: Array.from({ length: 1_000 }, (_, n) => email(n)) };
    const batches = Array.from({ length: 12 }, () => timed(service, "POST", "/v1/notifications/batch", thousand));
    const overloaded = await Promise.race(batches);
    assertRefusal(overloaded.answer, ["OVERLOADED"]);
    const singles = Array.from({ length: SENDERS }, () => timed(service, "POST", "/v1/notifications", email()));
    const reads = ["/v1/ledger", "/v1/notifications"].map((path) => timed(service, "GET", path));

    await assertAway(service, server.url);
    const { body: metrics } = await service.ask("GET", "/metrics");
    const waiting = Number(/^carillon_accept_waiting (\d+)$/m.exec(metrics)?.[1]);
    assert.ok(waiting > most / 2 && waiting <= most, `${waiting} are waiting`);

    const refusals = await Promise.all([...batches, ...singles, ...reads]);
    for (const { answer, tookMs } of refusals) {
      assertRefusal(answer, ["DATABASE_UNAVAILABLE", "OVERLOADED"]);
      assert.ok(tookMs < LONGEST_ANSWER_MS, `${answer.body.code} after ${tookMs} ms`);
    }
    assert.ok(refusals.filter(({ answer }) => answer.body.code === "OVERLOADED").length >= 6);
    await stopped;
    assertAnswers(load, ["DATABASE_UNAVAILABLE", "OVERLOADED"]);

    resume();
    const after = startLoad({ ask: service.ask, senders: SENDERS, random: seeded(2), name: "after" });
    await assertHealing(service, after);
    await after.stop();
    await assertNothingLost(t, service, server.url, load);
    await assertNothingLost(t, service, server.url, after);
  });
});

describe("a stop by SIGTERM", () => {
  test("answers every request under load or refuses its connection, and stores what it acknowledged", async (t) => {
    const { service, databaseUrl } = await startOnFreshDatabase(t, { CARILLON_DRAIN_MS: String(DRAIN_MS) });
    const senders = 30;
    const load = startLoad({ ask: service.ask, senders, random: seeded(3), name: "stop" });
    // Enough for all connections to be accepted: the kernel cuts those that are not when the service stops listening.
    await acknowledge(load, 1_000);

    const askedAt = performance.now();
    assert.equal((await service.end("SIGTERM")).code, 0, service.stderr());
    const tookMs = performance.now() - askedAt;
    assert.ok(tookMs < LONGEST_STOP_MS, `${tookMs} ms, although no request was slow`);
    await load.ended;
    for (const { answer } of load.outcomes) if (answer && answer.status > 299) assertRefusal(answer, ["SHUTTING_DOWN"]);
    // A sender that was kept from running for long, before its request left, may find its connection closed as idle; the others must not.
    const isLate = (endedAt: number) => endedAt > askedAt + IDLE_KEPT_MS;
    const cut = load.outcomes.filter(
      ({ answer, failure, endedAt }) => !answer && !failure?.includes("ECONNREFUSED") && !isLate(endedAt),
    );
    assert.ok(cut.length <= senders / 5, `${cut.length} of ${senders} connections were cut: ${cut[0]?.failure}`);
    const stored = await withClient(databaseUrl, readStored);
    assertKept(load.acknowledged, stored);
    assert.equal(stored.size, load.acknowledged.size, "something is stored that nobody was told of");
  });

  test("waits for a request whose body is still on its way", async (t) => {
    const { service, databaseUrl } = await startOnFreshDatabase(t);
    const headers = {
      authorization: `Bearer ${ADMIN_KEY}`,
      "content-type": "application/json",
      // The answer to this shows that the request is under way.
      expect: "100-continue",
    };
    const slow = request(`${service.url}/v1/notifications`, { method: "POST", headers });
    slow.flushHeaders();
    await once(slow, "continue");
    const exited = service.end("SIGTERM");
    await service.says(/"stopping"/);
    slow.end(JSON.stringify(email()));
    const [answer] = (await once(slow, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 202);
    const { notificationId } = (await json(answer)) as { notificationId: string };
    assert.equal((await exited).code, 0);
    assert.deepEqual([...(await withClient(databaseUrl, readStored)).keys()], [notificationId]);
  });
});

test("a stop by SIGTERM ends in time although the database hangs", { timeout: 300_000 }, async (t) => {
  const server = await controllableServer();
  let resume = (): void => {};
  t.after(() => resume());
  t.after(() => server.remove());
  const sandbox = await sandboxFor(t);
  const service = await sandbox.start({ DATABASE_URL: server.url, CARILLON_DRAIN_MS: "1000" });
  assert.equal((await service.ask("POST", "/v1/notifications", email())).status, 202);
  resume = await suspend(server.url);

  const tooLate = sleep(60_000, undefined, { ref: false }).then(() => assert.fail("it still runs after 60 s"));
  await Promise.race([service.end("SIGTERM"), tooLate]);
});

async function startOnFreshDatabase(t: TestContext, env: { [name: string]: string } = {}) {
  const database = await freshDatabase();
  t.after(() => database.drop());
  const service = await (await sandboxFor(t)).start({ DATABASE_URL: database.url, ...env });
  return { service, databaseUrl: database.url };
}

const acknowledge = (load: Load, more: number): Promise<void> => {
  const enough = load.acknowledged.size + more;
  return load.until(() => load.acknowledged.size >= enough);
};

async function timed(service: ServiceProcess, method: string, path: string, body?: unknown) {
  const startedAt = performance.now();
  const answer = await service.ask(method, path, body);
  return { answer, tookMs: performance.now() - startedAt };
}

function assertRefusal(answer: Answered | undefined, codes: string[]): void {
  assert.equal(answer?.status, 503, JSON.stringify(answer?.body));
  assert.ok(codes.includes(answer?.body.code), JSON.stringify(answer?.body));
  assert.match(answer?.headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.match(answer?.headers.get("retry-after") ?? "", /^\d+$/);
}

/** Every call was answered, in time, and either with a success or with a refusal that says what is wrong. */
function assertAnswers({ outcomes }: Load, codes: string[]): void {
  for (const { answer, call, failure, startedAt, endedAt } of outcomes) {
    assert.ok(answer, `${call.name} got no answer: ${failure}`);
    assert.ok(endedAt - startedAt < LONGEST_ANSWER_MS, `${call.name} took ${endedAt - startedAt} ms`);
    if (answer.status > 299) assertRefusal(answer, codes);
    else if (call.isBatch) assert.equal(answer.body.summary.failed, 0);
  }
}

async function assertAway(service: ServiceProcess, databaseUrl: string): Promise<void> {
  const paths = ["/live", "/ready", "/health"];
  const [live, ready, health] = await Promise.all(
    paths.map((path) => service.ask("GET", path, undefined, { key: null })),
  );
  assert.equal(live?.status, 200);
  assert.equal(ready?.status, 503);
  assert.equal(health?.status, 503);
  assert.equal(health?.body.status, "unhealthy");
  const [, password = "", socketDirectory = ""] = /:([^@]+)@.*host=([^&]+)/.exec(databaseUrl) ?? [];
  for (const secret of [password, decodeURIComponent(socketDirectory), ADMIN_KEY]) {
    assert.ok(secret.length > 0 && !JSON.stringify([ready, health]).includes(secret), secret);
    assert.ok(!service.stderr().includes(password) && !service.stderr().includes(ADMIN_KEY), "a secret is in the log");
  }
  assert.doesNotMatch(JSON.stringify([ready?.body, health?.body]), /postgres(ql)?:\/\//);
}

async function assertHealing(service: ServiceProcess, load: Load): Promise<void> {
  const backAt = performance.now();
  const before = load.acknowledged.size;
  await load.until(() => load.acknowledged.size > before);
  const healedMs = performance.now() - backAt;
  assert.ok(healedMs < LONGEST_HEALING_MS, `healed after ${healedMs} ms`);
  for (const path of ["/ready", "/health"]) assert.equal((await service.ask("GET", path)).status, 200, path);
}

async function assertNothingLost(t: TestContext, service: ServiceProcess, url: string, load: Load): Promise<void> {
  const stored = await withClient(url, readStored);
  assertKept(load.acknowledged, stored);
  const counts = countStored(stored);
  for (const { call } of load.outcomes) {
    const count = counts.get(call.name) ?? 0;
    assert.ok(count === 0 || count === call.requests.length, `${call.name}: ${count} of ${call.requests.length}`);
  }
  const { body: ledger } = await service.ask("GET", "/v1/ledger");
  assert.equal(ledger.balanced, true, JSON.stringify(ledger));
  assert.ok(ledger.accepted >= load.acknowledged.size);
  t.diagnostic(`${load.acknowledged.size} acknowledged in ${load.outcomes.length} calls`);
}

/** SIGSTOP to every process of the server: it keeps its connections and accepts new ones, but says nothing. */
async function suspend(url: string): Promise<() => void> {
  return withClient(url, async (client) => {
    const directory = (await client.query("show data_directory")).rows[0]?.data_directory;
    const postmaster = Number.parseInt(readFileSync(join(directory, "postmaster.pid"), "utf8"), 10);
    // First the one that could start more of them.
    process.kill(postmaster, "SIGSTOP");
    const { rows } = await client.query<{ pid: number }>(
      "select pid from pg_stat_activity where pid <> pg_backend_pid()",
    );
    const all = [postmaster, ...rows.map(({ pid }) => pid)];
    for (const pid of all) process.kill(pid, "SIGSTOP");
    const resume = () => {
      process.off("exit", resume);
      // The postmaster last: one that was ending just then is there until it looks.
      for (const pid of all.splice(0).reverse()) process.kill(pid, "SIGCONT");
    };
    process.once("exit", resume);
    return resume;
  });
}

async function withClient<Value>(url: string, use: (client: pg.Client) => Promise<Value>): Promise<Value> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return use(client).finally(() => client.end());
}
