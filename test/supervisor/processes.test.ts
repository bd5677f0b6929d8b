// Several processes behind one port, as an operator starts, kills and stops them.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { assertKept, readStored, seeded, startLoad } from "../support/load.ts";
import { freshDatabase } from "../support/postgres.ts";
import { gone, isAlive, type ServiceProcess, sandboxFor } from "../support/process.ts";
import { ADMIN_KEY, email } from "../support/service.ts";
import { until } from "../support/until.ts";

const TWO = { CARILLON_PROCESSES: "2" };

type Line = { process?: number | "supervisor"; msg: string; number?: number; pid?: number; pauseMs?: number };

const linesOf = ({ stderr }: Pick<ServiceProcess, "stderr">): Line[] =>
  stderr()
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line));

/** The processes that have served so far, by their numbers: the last one of each. */
const pidsOf = (service: Pick<ServiceProcess, "stderr">): Map<number, number> =>
  new Map(
    linesOf(service)
      .filter(({ msg }) => msg === "a process serves")
      .map(({ number = 0, pid = 0 }) => [number, pid]),
  );

/** On a connection of its own each time, so that the processes answer in turn. */
const anew = { headers: { connection: "close" } };

/** Whoever was connected to a process that is killed is cut off, and asks again. */
const look = (service: ServiceProcess, path: string) =>
  until(() => service.ask("GET", path, undefined, anew).catch(() => undefined));

async function figure(service: ServiceProcess, name: string): Promise<number | undefined> {
  const { body } = await look(service, "/metrics");
  const line = String(body)
    .split("\n")
    .find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
}

const pidOf = (service: ServiceProcess, number: number): number =>
  pidsOf(service).get(number) ?? assert.fail(`no process ${number}`);

/** Kills a process, and waits until another serves in its place. */
async function killOne(service: ServiceProcess, number: number): Promise<void> {
  const pid = pidOf(service, number);
  process.kill(pid, "SIGKILL");
  await until(async () => (pidOf(service, number) === pid ? undefined : true), 60_000);
}

/** Nobody but the supervisor is told. */
async function stopAlone(service: ServiceProcess, signal: NodeJS.Signals) {
  process.kill(service.pid, signal);
  return service.exited;
}

test("two processes answer behind one port, with one key, one database and one set of figures, and stop together", async (t) => {
  const sandbox = await sandboxFor(t);
  const service = await sandbox.start({
    ...TWO,
    CARILLON_API_KEY: undefined,
    CARILLON_ROLES: "api",
    CARILLON_LOG_LEVEL: "debug",
  });
  const keys = service.stdout().match(/ck_\w+/g) ?? [];
  assert.equal(keys.length, 1, service.stdout());
  assert.equal(service.stdout().match(/listening on/g)?.length, 1);
  const key = keys[0] ?? "";
  const COUNT = 20;
  for (let n = 0; n < COUNT; n++) {
    assert.equal((await service.ask("POST", "/v1/notifications", email(n), { key, ...anew })).status, 202);
  }
  const answered = linesOf(service).filter(({ msg }) => msg === "request");
  for (const number of [1, 2]) {
    const count = answered.filter((line) => line.process === number).length;
    assert.ok(count >= COUNT / 4, `process ${number} answered ${count} of ${COUNT}`);
  }

  // Whoever of them is asked.
  for (let n = 0; n < 4; n++) {
    assert.equal(await figure(service, "carillon_accept_commit_rows_sum"), COUNT);
    assert.equal(
      await figure(service, 'notification_queue_depth{priority="normal"}'),
      COUNT,
      "one database, one queue",
    );
    assert.equal(await figure(service, 'carillon_processes{state="up"}'), 2);
  }
  assert.equal(await told(service), "all 2 serve");

  const server = sandbox.server().pid;
  const pids = [...pidsOf(service).values()];
  const { code, stderr } = await stopAlone(service, "SIGTERM");
  assert.equal(code, 0, stderr);
  assert.deepEqual([...pids, server].filter(isAlive), [], "something still runs");
  const stopped = linesOf(service).filter(({ msg }) => msg === "stopped");
  assert.deepEqual(new Set(stopped.map((line) => line.process)), new Set([1, 2, "supervisor"]));
  assert.ok(!stderr.includes("is replaced"));
});

test("a process that is killed under load is replaced, ever more patiently; the other goes on, and nothing accepted is lost", async (t) => {
  const sandbox = await sandboxFor(t);
  const service = await sandbox.start({ ...TWO, CARILLON_LEASE_MS: "1000", CARILLON_SWEEP_MS: "100" });
  // What is lost with a second worker is otherwise sent again after an hour.
  const retryPolicy = { maxBackoffMs: 1_000 };
  const load = startLoad({
    ...{ ask: service.ask, senders: 16, random: seeded(7), name: "load", isStubborn: true },
    retryPolicy,
  });
  await load.until(() => load.acknowledged.size >= 100);
  const before = (await figure(service, "carillon_accept_commit_rows_sum")) ?? 0;
  assert.ok(before > 0);
  process.kill(pidOf(service, 1), "SIGKILL");
  const killedAt = performance.now();
  await load.until((latest) => latest?.answer !== undefined && latest.startedAt > killedAt);
  await until(async () =>
    (await told(service)) === "degraded: 1 of 2 serve, the others are being replaced" ? true : undefined,
  );
  assert.ok(((await figure(service, "carillon_accept_commit_rows_sum")) ?? 0) >= before, "a counter fell");
  await until(async () => ((await told(service)) === "all 2 serve" ? true : undefined), 60_000);
  await load.stop();
  await killOne(service, 1);
  const ends = linesOf(service).filter(({ msg }) => msg === "a process ended and is replaced");
  assert.deepEqual(
    ends.map(({ number, pauseMs }) => [number, pauseMs]),
    [
      [1, 250],
      [1, 500],
    ],
  );
  assert.equal(await figure(service, "carillon_processes_replaced_total"), 2);

  await assertNobodyHangs(service, 2);
  const db = await sandbox.connect();
  assertKept(load.acknowledged, await readStored(db));
  // What the killed ones had in hand is taken over, and ends as all the rest; with three of them lost, as what nobody knows.
  await until(async () => {
    const { rowCount } = await db.query(
      `select from carillon.records
       where status not in ('sent', 'ambiguous') and request ->> 'scheduledFor' is null limit 1`,
    );
    return rowCount === 0 ? true : undefined;
  }, 60_000);
  await assertSecondSignalEnds(service);
});

/** Whoever was just being connected with a process that is killed learns of it. */
async function assertNobodyHangs(service: ServiceProcess, number: number): Promise<void> {
  const pid = pidOf(service, number);
  process.kill(pid, "SIGSTOP");
  const asked = Array.from({ length: 4 }, async () => {
    const asking = request(`${service.url}/live`, { agent: false }).end();
    const [answer] = (await once(asking, "response")) as [IncomingMessage];
    return answer.resume().statusCode;
  });
  // The other one answers meanwhile.
  assert.equal(await Promise.any(asked), 200);
  await killOne(service, number);
  const outcomes = await Promise.allSettled(asked);
  assert.ok(outcomes.some(({ status }) => status === "rejected"));
}

/** What /health says of the processes. */
async function told(service: ServiceProcess): Promise<string> {
  const { body } = await look(service, "/health");
  const { detail, degraded } = body.checks.find(({ name }: { name: string }) => name === "processes");
  return degraded ? `degraded: ${detail}` : detail;
}

/** A request that never ends would hold up the stop for the whole drain. */
async function assertSecondSignalEnds(service: ServiceProcess): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json", expect: "100-continue" };
  const slow = request(`${service.url}/v1/notifications`, { method: "POST", headers });
  slow.on("error", () => undefined);
  slow.flushHeaders();
  await once(slow, "continue");
  process.kill(service.pid, "SIGTERM");
  await until(async () => {
    const stopping = linesOf(service).filter(({ msg }) => msg === "stopping");
    return stopping.length === 3 ? true : undefined;
  });
  assert.equal((await stopAlone(service, "SIGTERM")).code, 1);
  for (const pid of pidsOf(service).values()) await gone(pid);
}

test("what a process cannot start with is said once, in its own words, and ends all of it", async (t) => {
  const sandbox = await sandboxFor(t);
  const database = await freshDatabase();
  t.after(() => database.drop());
  // Somebody took the port after it was found to be free.
  const taken = join(sandbox.directory, "taken.mjs");
  await writeFile(
    taken,
    `import { Server } from "node:net";
    const error = Object.assign(new Error("listen EADDRINUSE: address already in use"), { code: "EADDRINUSE", syscall: "listen" });
    if (/cli.process/.test(process.argv[1])) Server.prototype.listen = function () { process.nextTick(() => this.emit("error", error)); };`,
  );
  const env = { ...TWO, DATABASE_URL: database.url, NODE_OPTIONS: `--import=${taken}` };
  const { code, stderr, stdout } = await sandbox.launch(env).exited;
  assert.equal(code, 1, stderr);
  assert.equal(stdout, "");
  const complaints = stderr.split("\n").filter((line) => line.startsWith("carillon: "));
  assert.deepEqual(complaints, [
    "carillon: listen EADDRINUSE: address already in use. Something else listens there: stop it, or set PORT.",
  ]);
  assert.doesNotMatch(stderr, /is replaced/);
});

test("a fault in the configuration is named as for one process, and nothing is started", async (t) => {
  const sandbox = await sandboxFor(t);
  const faulty = await sandbox.run(["start"], { ...TWO, PORT: "70000" });
  assert.deepEqual([faulty.code, faulty.stdout], [78, ""]);
  assert.match(faulty.stderr, /^ {2}PORT: expected a port from 0 to 65535, found "70000"$/m);
});

/** Two workers of which each has one that is being sent and more in hand; nobody answers them. */
async function heldUp(t: TestContext) {
  const unanswered: ServerResponse[] = [];
  const receiver = createServer((asked, answer) => {
    asked.resume();
    unanswered.push(answer);
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const sandbox = await sandboxFor(t);
  const service = await sandbox.start({
    ...TWO,
    CARILLON_CONCURRENCY: "1",
    // Longer than the test may take: what comes back sooner was handed back.
    CARILLON_LEASE_MS: "600000",
    CARILLON_SEND_TIMEOUT_MS: "60000",
    CARILLON_DRAIN_MS: "500",
    CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
  });
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const hook = { channel: "webhook", recipient: { webhookUrl }, content: { body: "b" } };
  assert.equal(
    (await service.ask("POST", "/v1/notifications/batch", { notifications: Array(8).fill(hook) })).status,
    200,
  );
  await until(async () => (unanswered.length > 0 ? true : undefined));
  return { sandbox, service };
}

/** Asks for figures that the supervisor, which stands still, does not put together: what that is answered with. */
async function scrapeUnanswered({ url, pid }: ServiceProcess): Promise<{ answer: Promise<string> }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_KEY}\r\n\r\n`;
  socket.write(head("/live"));
  await once(socket, "data");
  process.kill(pid, "SIGSTOP");
  socket.write(head("/live") + head("/metrics"));
  await once(socket, "data");
  const cutOff = once(socket, "close").then(() => "");
  return { answer: Promise.race([once(socket, "data").then(String), cutOff]) };
}

test("when the supervisor is killed, its processes hand back what they hold and end, and the database after them", async (t) => {
  const { sandbox, service } = await heldUp(t);
  const held = async () => {
    const db = await sandbox.connect();
    const { rows } = await db.query(
      `select (select count(*)::int from carillon.leased) as held,
         (select count(*)::int from carillon.records where status in ('queued', 'pending')) as waiting`,
    );
    await db.end();
    return rows[0];
  };
  assert.notEqual((await held()).held, 0);
  const pids = [...pidsOf(service).values()];
  assert.deepEqual(pids.map(isAlive), [true, true]);
  const server = sandbox.server().pid;
  const { answer } = await scrapeUnanswered(service);
  process.kill(service.pid, "SIGKILL");
  assert.match(await answer, /^HTTP\/1\.1 5\d\d /, "who waits for the figures of all is told");
  for (const pid of [...pids, server]) await gone(pid);
  await assert.rejects(service.ask("GET", "/live"));
  await sandbox.start({ CARILLON_ROLES: "api" });
  assert.deepEqual(await held(), { held: 0, waiting: 8 });
});
