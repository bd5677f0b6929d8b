// Whether healthy ones wait for a receiver that hangs: mail beside one such host, and 900 hosts beside 100 of them.
//
// All is of one tenant, in one lane, so that nothing but the wall between receivers is between them.

import { fileURLToPath } from "node:url";
import { createCarillon, type NotificationRequest } from "../../../src/index.ts";
import { carillonAdapter } from "../../adapters/carillon.ts";
import { notification } from "../../payload.ts";
import { startProgram, whenReady } from "../../program.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { measureWaits, SAMPLES, type Watch } from "./waits.ts";

export const WITHOUT = "mail, no such host";
export const BESIDE = "mail beside a host that hangs 10 s";
export const HOSTS = "900 hosts beside 100 that hang";

/** Of either kind, mails and webhooks. */
const MAILS_EVERY_MS = 20;
const MAILS_WARM_UP = 100;
/** For the host that hangs, at once when the measuring begins. */
const AT_ONCE = 1_000;
/** Just within the time that a send may take: it is a success, and no breaker ever keeps us from it. */
const HANGS = "/after/9900";

const HOST_COUNT = 1_000;
const HANGING = 100;
const HOSTS_EVERY_MS = 5;
/** Every host once, and every one of them answers: they begin to hang when the measuring begins. */
const HOSTS_WARM_UP = HOST_COUNT;
const addressOf = (host: number): string => `127.1.${Math.floor(host / 250)}.${1 + (host % 250)}`;
/** Every tenth. */
const hangs = (host: number): boolean => host % (HOST_COUNT / HANGING) === 0;

const webhook = (url: string, at = 0): NotificationRequest => ({
  ...notification(0, at),
  channel: "webhook",
  recipient: { webhookUrl: url },
  content: { body: "x".repeat(126) },
});

async function startReceivers() {
  const script = fileURLToPath(new URL("../../receivers.ts", import.meta.url));
  const program = await startProgram(process.execPath, [script], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const heard = <Message extends object>(name: keyof Message) =>
    new Promise<Message>((resolve) => {
      program.child.on("message", (message: Message) => {
        if (name in message) resolve(message);
      });
    });
  let measured = 0;
  program.child.on("message", (message: { measured?: number }) => {
    measured = message.measured ?? measured;
  });
  const { port } = await whenReady(program, "the receivers", heard<{ port: number }>("port"));
  const watch: Watch = {
    measured: () => measured,
    async leave() {
      program.child.send("leave");
      const { latencies, handedAts } = await heard<{ latencies: number[]; handedAts: number[] }>("latencies");
      return new Map(handedAts.map((at, n) => [at, latencies[n] ?? Number.NaN]));
    },
  };
  return { program, port, watch };
}

async function furnish(world: World) {
  const adapter = carillonAdapter(world.databaseUrl);
  await adapter.clear();
  const carillon = createCarillon({ databaseUrl: world.databaseUrl });
  await carillon.send(notification(0));
  const receivers = await startReceivers();
  const pool = await startWorkers("carillon", "receivers", world, 1);
  return {
    carillon,
    receivers,
    pool,
    processes: { ...pool.processes, receivers: receivers.program.pid },
    async finish() {
      await receivers.program.stop();
      await carillon.close();
      await adapter.clear();
    },
  };
}

const mailCase = (world: World, variant: string): Case => ({
  variant,
  subject: "carillon",
  settings: "defaults, all roles; 127.0.0.0/8 allowed",
  isOnce: true,
  async prepare() {
    const { carillon, receivers, pool, processes, finish } = await furnish(world);
    const url = `http://127.1.0.1:${receivers.port}${HANGS}`;
    /** The webhooks that go along with mail number i. */
    const beside = (i: number): NotificationRequest[] => {
      if (variant !== BESIDE || i < MAILS_WARM_UP) return [];
      return Array.from({ length: i === MAILS_WARM_UP ? AT_ONCE - 1 : 1 }, () => webhook(url));
    };
    await settleStore(world.databaseUrl);
    return {
      processes,
      async measure() {
        await pool.go();
        return measureWaits({
          watch: pool,
          everyMs: MAILS_EVERY_MS,
          // Half a minute: three times what the host takes for one.
          samples: 1.5 * SAMPLES,
          warmUp: MAILS_WARM_UP,
          hand: (i, at) => carillon.sendBatch([...beside(i), notification(0, at)]),
        });
      },
      finish,
    };
  },
});

const hostsCase = (world: World): Case => ({
  variant: HOSTS,
  subject: "carillon",
  settings: "defaults, all roles; 127.0.0.0/8 allowed; 200 webhooks a second, to one host after the other",
  isOnce: true,
  async prepare() {
    const { carillon, receivers, pool, processes, finish } = await furnish(world);
    const urlOf = (i: number) => {
      const host = i % HOST_COUNT;
      const path = i >= HOSTS_WARM_UP && hangs(host) ? "/never" : "/";
      return `http://${addressOf(host)}:${receivers.port}${path}`;
    };
    await settleStore(world.databaseUrl);
    return {
      processes,
      async measure() {
        await pool.go();
        const figures = await measureWaits({
          watch: receivers.watch,
          everyMs: HOSTS_EVERY_MS,
          samples: 6 * SAMPLES,
          warmUp: HOSTS_WARM_UP,
          isMeasured: (i) => !hangs(i % HOST_COUNT),
          hand: (i, at) => carillon.send(webhook(urlOf(i), at)),
        });
        await pool.leave();
        return figures;
      },
      finish,
    };
  },
});

export const receivers: Part = {
  title: "How long healthy ones wait beside receivers that hang, 99th percentile",
  figure: { name: "p99Ms", unit: " ms" },
  targets: [
    { variant: BESIDE, subject: "carillon", above: { variant: WITHOUT, atMost: 100 } },
    { variant: HOSTS, subject: "carillon", limits: { p99Ms: 1_000 } },
  ],
  cases: (world) => [mailCase(world, WITHOUT), mailCase(world, BESIDE), hostsCase(world)],
};
