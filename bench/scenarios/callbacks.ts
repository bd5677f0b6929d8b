// How fast callbacks are delivered, beside a bare client that signs and posts; and what they cost those who send, while their receiver hangs.

import { fileURLToPath } from "node:url";
import { acceptedRow } from "../../src/domain/callback.ts";
import { newEndpointId, newSecrets, publicKeyOf, sealSecrets } from "../../src/domain/endpoint.ts";
import { createIds } from "../../src/domain/ids.ts";
import { createCarillon } from "../../src/index.ts";
import { clearCarillon } from "../adapters/carillon.ts";
import { secondsOf } from "../cpu.ts";
import { drain as measureDrain } from "../drain.ts";
import { notification } from "../payload.ts";
import { profileFlags } from "../profile.ts";
import { startProgram, whenReady } from "../program.ts";
import type { Case, Figures, Part, Prepared, Scenario, World } from "../scenario.ts";
import { count, runSql, settleStore } from "../sql.ts";
import { startWorkers } from "../worker-pool.ts";
import { CALLBACK_KEY } from "../workers/carillon.ts";

const LATENCY_MS = 5;
/** As many as Carillon has to one receiver: 18, less two for urgent ones. */
const CONNECTIONS = 16;
const CALLBACKS = 20_000;
const JOBS = 50_000;
const BATCH = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Counted = { answered: number; lastAt: number; connections: number };

async function startReceiver(how: "answering" | "hanging") {
  const script = fileURLToPath(new URL("../callback-receiver.ts", import.meta.url));
  const program = await startProgram(process.execPath, [script, String(LATENCY_MS), how], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const next = <Message>() =>
    new Promise<Message>((resolve) => program.child.once("message", (message) => resolve(message as Message)));
  const { port } = await whenReady(program, "the receiver", next<{ port: number }>());
  const report = (): Promise<Counted> => {
    const said = next<Counted>();
    program.child.send("report");
    return said;
  };
  return { url: `http://127.0.0.1:${port}`, program, report, answer: () => program.child.send("answer") };
}
type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Answers per second, from a tenth of them on; `atTenth` is called then. */
async function paceOf({ report }: Receiver, all: number, atTenth = () => {}): Promise<number> {
  const until = async (least: number): Promise<Counted> => {
    for (;;) {
      const found = await report();
      if (found.answered >= least) return found;
      await pause(5);
    }
  };
  const first = await until(all / 10);
  atTenth();
  const last = await until(all);
  return (last.answered - first.answered) / ((last.lastAt - first.lastAt) / 1000);
}

/** And what each costs whoever posts it, in processor time: that hardly depends on what else the machine does. */
async function posting(receiver: Receiver, pids: Readonly<Record<string, number>>): Promise<Figures> {
  const names = Object.entries(pids);
  const used = () => names.map(([, pid]) => secondsOf([pid]));
  let before: number[] = [];
  const perSecond = await paceOf(receiver, CALLBACKS, () => {
    before = used();
  });
  const after = used();
  const costs = names.map(([name], n) => [
    `${name}Us`,
    (((after[n] ?? 0) - (before[n] ?? 0)) * 1e6) / (CALLBACKS * 0.9),
  ]);
  return { perSecond, connections: (await receiver.report()).connections, ...Object.fromEntries(costs) };
}

const DATA = {
  notificationId: "00000000-0000-7000-8000-000000000000",
  channel: "email",
  priority: "normal",
  status: "sent",
};
const TIMESTAMP = "2026-01-01T00:00:00.000Z";
const TYPE = "notification.sent";

async function migrate({ databaseUrl }: World): Promise<void> {
  await clearCarillon(databaseUrl);
  const carillon = createCarillon({ databaseUrl });
  await carillon.send(notification(0));
  await carillon.close();
}

/** An endpoint, and so many callbacks for it. */
async function fillCallbacks(world: World, url: string): Promise<void> {
  await migrate(world);
  const { databaseUrl } = world;
  const place = { tenant: 1, id: newEndpointId() };
  const secrets = newSecrets();
  const sealed = sealSecrets([CALLBACK_KEY], place, secrets);
  await runSql(
    databaseUrl,
    `insert into carillon.endpoints (tenant, id, url, sealed, public_key)
     values (1, '${place.id}', '${url}/', '${sealed}', '${publicKeyOf(secrets)}')`,
  );
  const newId = createIds();
  for (let from = 0; from < CALLBACKS; from += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, n) => {
      const webhookId = `msg_${from + n}`;
      const callback = { webhookId, endpoint: place.id, type: TYPE, timestamp: TIMESTAMP, data: DATA };
      return acceptedRow({ id: newId(), tenant: 1, policy: "best_effort", callback });
    });
    await runSql(databaseUrl, `select carillon.accept('[${rows.join(",")}]', false)`);
  }
}

const delivering = (world: World): Case => ({
  variant: "deliver",
  subject: "carillon",
  settings: "defaults, all roles, full record",
  async prepare() {
    const receiver = await startReceiver("answering");
    await fillCallbacks(world, receiver.url);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("carillon", "callbacks", world, 1);
    return {
      processes: pool.processes,
      async measure() {
        await pool.go();
        const [client = 0] = Object.values(pool.processes);
        return posting(receiver, { client, ...world.servers });
      },
      async finish() {
        await pool.stop();
        await receiver.program.stop();
        await clearCarillon(world.databaseUrl);
      },
    };
  },
});

const bare = (world: World): Case => ({
  variant: "deliver",
  subject: "bare client",
  settings: `undici, ${CONNECTIONS} connections, v1 and v1a`,
  async prepare(): Promise<Prepared> {
    const receiver = await startReceiver("answering");
    const script = fileURLToPath(new URL("../bare-caller.ts", import.meta.url));
    const body = JSON.stringify({ type: TYPE, timestamp: TIMESTAMP, data: DATA });
    const args = [
      ...profileFlags(world.profileDirectory, "bare"),
      script,
      receiver.url,
      String(CONNECTIONS),
      String(CALLBACKS),
      body,
    ];
    const program = await startProgram(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    await whenReady(program, "the bare client", new Promise((resolve) => program.child.once("message", resolve)));
    return {
      processes: { client: program.pid },
      async measure() {
        program.child.send("go");
        return posting(receiver, { client: program.pid });
      },
      async finish() {
        await program.stop();
        await receiver.program.stop();
      },
    };
  },
});

/** Notifications that wait, each of which calls back or none. */
async function fillNotifications(world: World, callbackUrl: string | undefined): Promise<void> {
  await migrate(world);
  const carillon = createCarillon({ databaseUrl: world.databaseUrl });
  for (let from = 1; from < JOBS; from += BATCH) {
    const requests = Array.from({ length: Math.min(BATCH, JOBS - from) }, (_, n) => ({
      ...notification(from + n),
      ...(callbackUrl !== undefined && { callbackUrl }),
    }));
    await carillon.sendBatch(requests);
  }
  await carillon.close();
}

const WAITING = `(select from carillon.ready where priority < 4 union all select from carillon.leased where priority < 4) waiting`;

const draining = (world: World, subject: "with callbacks" | "without"): Case => ({
  variant: "drain",
  subject,
  settings:
    subject === "without"
      ? "defaults"
      : "every notification calls back to a receiver that hangs, and answers afterwards",
  async prepare() {
    const receiver = await startReceiver("hanging");
    await fillNotifications(world, subject === "without" ? undefined : `${receiver.url}/`);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("carillon", "callbacks", world, 1);
    return {
      processes: pool.processes,
      async measure() {
        const perSecond = await measureDrain(pool, JOBS, () => count(world.databaseUrl, WAITING));
        if (subject === "without") return { perSecond };
        receiver.answer();
        return { perSecond, catchUpPerSecond: await paceOf(receiver, JOBS - 1) };
      },
      async finish() {
        await pool.stop();
        await receiver.program.stop();
        await clearCarillon(world.databaseUrl);
      },
    };
  },
});

const deliver: Part = {
  title: `${CALLBACKS.toLocaleString("en")} callbacks to a receiver of ${LATENCY_MS} ms, ${CONNECTIONS} connections`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "deliver", subject: "carillon", against: "bare client", atLeast: 0.7 }],
  cases: (world) => [delivering(world), bare(world)],
};

const hanging: Part = {
  title: `Drain of ${JOBS.toLocaleString("en")} notifications that call back to a receiver that hangs`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "drain", subject: "with callbacks", against: "without", atLeast: 0.97 }],
  cases: (world) => [draining(world, "with callbacks"), draining(world, "without")],
};

export const callbacks: Scenario = {
  summary: "deliver callbacks, and send while their receiver hangs",
  parts: { deliver, hanging },
};
