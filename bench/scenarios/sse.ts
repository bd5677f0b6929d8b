// Many open streams in one process, beside the least that Node can do: memory, how long a broadcast takes, how soon
// an event follows a request, and how long the process is deaf meanwhile.
//
// Carillon's streams are a process of their own; another accepts and stores. STREAMS sets how many streams there are.

import { fileURLToPath } from "node:url";
import { clearCarillon } from "../adapters/carillon.ts";
import { type Program, startProgram, whenReady } from "../program.ts";
import type { Case, Figures, Part, Prepared, Scenario, World } from "../scenario.ts";
import type { Asked, Said } from "../sse-clients.ts";
import { quantile } from "../statistics.ts";
import { residentMiB } from "./mix.ts";

const STREAMS = Number(process.env.STREAMS || 10_000);
const CONNECTED = Math.min(STREAMS, 1_000);
const BROADCASTS = 10;
const EVENTS = 500;
const EVERY_MS = 10;
const API_KEY = "bench-key-of-no-secret";
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const EVERYBODY = "everybody";

type Served = { programs: Program[]; stream: Program; streamUrl: string; sendUrl: string };
type Subject = { name: string; settings: string; serve: (world: World) => Promise<Served> };

async function listening(name: string, command: string[], env: Record<string, string>) {
  const stdio = ["ignore", "pipe", "inherit"] as ["ignore", "pipe", "inherit"];
  const program = await startProgram(process.execPath, command, { cwd: ROOT, env: { ...process.env, ...env }, stdio });
  const heard = new Promise<string>((resolve) => {
    let printed = "";
    program.child.stdout?.on("data", (text: Buffer) => {
      printed += text;
      const url = /listening on (http:\S+)/.exec(printed)?.[1];
      if (url) resolve(url);
    });
  });
  return { program, url: await whenReady(program, name, heard) };
}

const carillon: Subject = {
  name: "carillon",
  settings: "the role stream in a process of its own; api, worker, scheduler and keeper in another",
  async serve({ databaseUrl }) {
    const env = {
      DATABASE_URL: databaseUrl,
      PORT: "0",
      CARILLON_API_KEY: API_KEY,
      CARILLON_LOG_LEVEL: "warn",
      CARILLON_STREAMS_PER_USER: "10000",
      CARILLON_DRAIN_MS: "1000",
    };
    const command = ["src/cli/carillon.ts", "start"];
    const rest = await listening("carillon", command, { ...env, CARILLON_ROLES: "api,worker,scheduler,keeper" });
    const stream = await listening("carillon", command, { ...env, CARILLON_ROLES: "stream" });
    const programs = [stream.program, rest.program];
    return { programs, stream: stream.program, streamUrl: stream.url, sendUrl: rest.url };
  },
};

const bare: Subject = {
  name: "bare SSE server",
  settings: "node:http, a write to each response; no authentication, no database, no resuming",
  async serve() {
    const { program, url } = await listening("bare SSE server", ["bench/bare-sse.ts"], {});
    return { programs: [program], stream: program, streamUrl: url, sendUrl: url };
  },
};

async function startClients() {
  const stdio = ["ignore", "inherit", "inherit", "ipc"] as ["ignore", "inherit", "inherit", "ipc"];
  const program = await startProgram(process.execPath, ["bench/sse-clients.ts"], { cwd: ROOT, stdio });
  const heard = <Kind extends Said["kind"]>(kind: Kind) =>
    new Promise<Extract<Said, { kind: Kind }>>((resolve, reject) => {
      const { child } = program;
      const died = () => reject(new Error("the clients ended"));
      const listen = (said: Said) => {
        if (said.kind !== kind) return;
        child.off("message", listen).off("exit", died);
        resolve(said as Extract<Said, { kind: Kind }>);
      };
      child.on("message", listen).once("exit", died);
    });
  const ask = (asked: Asked) => void program.child.send(asked);
  return { program, ask, heard };
}
type Clients = Awaited<ReturnType<typeof startClients>>;

async function send(url: string, userId: string): Promise<void> {
  const title = `at ${performance.timeOrigin + performance.now()}`;
  const answer = await fetch(`${url}/v1/notifications`, {
    method: "POST",
    headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ channel: "inbox", recipient: { userId }, content: { title, body: "x".repeat(150) } }),
  });
  await answer.text();
  if (answer.status !== 202) throw new Error(`${answer.status} to a send`);
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** The longest that the process took to answer something else meanwhile. */
async function longestWait(url: string, meanwhile: Promise<unknown>): Promise<number> {
  let isOver = false;
  void meanwhile.finally(() => {
    isOver = true;
  });
  let longest = 0;
  while (!isOver) {
    const askedAt = performance.now();
    await (await fetch(`${url}/live`)).text();
    longest = Math.max(longest, performance.now() - askedAt);
    await pause(5);
  }
  return longest;
}

function caseOf(
  world: World,
  subject: Subject,
  variant: string,
  users: string[],
  act: (served: Served, clients: Clients) => Promise<Figures>,
): Case {
  return {
    variant,
    subject: subject.name,
    settings: subject.settings,
    async prepare(): Promise<Prepared> {
      await clearCarillon(world.databaseUrl);
      const served = await subject.serve(world);
      const clients = await startClients();
      await fetch(`${served.streamUrl}/live`);
      await pause(1_000);
      const beforeMiB = residentMiB(served.stream.pid);
      const opened = clients.heard("opened");
      clients.ask({ kind: "open", url: served.streamUrl, users, apiKey: API_KEY });
      const { seconds } = await opened;
      await pause(2_000);
      const kBPerStream = ((residentMiB(served.stream.pid) - beforeMiB) * 1024) / users.length;
      return {
        processes: { stream: served.stream.pid, clients: clients.program.pid },
        measure: async () => ({ kBPerStream, opensPerSecond: users.length / seconds, ...(await act(served, clients)) }),
        async finish() {
          await clients.program.stop();
          for (const program of served.programs) await program.stop();
          await clearCarillon(world.databaseUrl);
        },
      };
    },
  };
}

async function broadcast({ sendUrl, streamUrl }: Served, clients: Clients): Promise<Figures> {
  const latencies: number[] = [];
  let stallMs = 0;
  for (let n = 0; n < BROADCASTS; n++) {
    const arrived = clients.heard("arrived");
    clients.ask({ kind: "expect", count: STREAMS });
    await pause(100);
    const watched = longestWait(streamUrl, arrived);
    await send(sendUrl, EVERYBODY);
    // The first warms up.
    const { latenciesMs } = await arrived;
    const waitedMs = await watched;
    if (n === 0) continue;
    latencies.push(...latenciesMs);
    stallMs = Math.max(stallMs, waitedMs);
  }
  return { p99Ms: quantile(latencies, 0.99), p50Ms: quantile(latencies, 0.5), stallMs };
}

async function events({ sendUrl }: Served, clients: Clients, users: string[]): Promise<Figures> {
  let figures: Figures = {};
  for (const count of [50, EVENTS]) {
    const arrived = clients.heard("arrived");
    clients.ask({ kind: "expect", count });
    const sends: Promise<void>[] = [];
    for (let n = 0; n < count; n++) {
      sends.push(send(sendUrl, users[(n * 7) % users.length] as string));
      await pause(EVERY_MS);
    }
    await Promise.all(sends);
    const { latenciesMs } = await arrived;
    figures = { p99Ms: quantile(latenciesMs, 0.99), p50Ms: quantile(latenciesMs, 0.5) };
  }
  return figures;
}

const streams = (count: number) => `${count.toLocaleString("en")} streams`;

const broadcastPart: Part = {
  title: `One item to ${streams(STREAMS)}, from the request to each arrival`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: [
    { variant: streams(STREAMS), subject: "carillon", against: "bare SSE server", figure: "p99Ms", atMost: 1.5 },
    { variant: streams(STREAMS), subject: "carillon", against: "bare SSE server", figure: "kBPerStream", atMost: 1.6 },
    { variant: streams(STREAMS), subject: "carillon", limits: { stallMs: 25 } },
  ],
  cases: (world) => {
    const everybody = Array<string>(STREAMS).fill(EVERYBODY);
    return [carillon, bare].map((subject) => caseOf(world, subject, streams(STREAMS), everybody, broadcast));
  },
};

const eventPart: Part = {
  title: `From a request to its event, ${CONNECTED.toLocaleString("en")} users connected, one every ${EVERY_MS} ms`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: [{ variant: streams(CONNECTED), subject: "carillon", limits: { p50Ms: 15, p99Ms: 60 } }],
  cases: (world) => {
    const users = Array.from({ length: CONNECTED }, (_, n) => `u${n}`);
    return [carillon, bare].map((subject) =>
      caseOf(world, subject, streams(CONNECTED), users, (served, clients) => events(served, clients, users)),
    );
  },
};

export const sse: Scenario = {
  summary: "streams of inboxes beside a bare SSE server",
  parts: { broadcast: broadcastPart, event: eventPart },
};
