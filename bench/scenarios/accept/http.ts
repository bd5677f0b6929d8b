// One notification per request over HTTP: the service as it is run, beside the least that a Fastify
// route with the same validation can do. Load, service and database are processes of their own.

import { fileURLToPath } from "node:url";
import { clearCarillon, countNotifications } from "../../adapters/carillon.ts";
import { secondsOf } from "../../cpu.ts";
import { type Load, startLoad } from "../../load.ts";
import { profileFlags } from "../../profile.ts";
import { type Program, startProgram, whenReady } from "../../program.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";

const CONNECTIONS = 50;
const WARM_UP_SECONDS = 3;
const SECONDS = 10;
const API_KEY = "bench-key-of-no-secret";
export const VARIANT = `${CONNECTIONS} connections`;

export type Subject = {
  name: string;
  settings: string;
  /** Relative to the repository. */
  command: string[];
  env: Record<string, string>;
  /** How many of the answered requests must be found stored. */
  stored?: () => Promise<number>;
};

export const httpPart: Part = {
  title: `One notification per request over HTTP, ${SECONDS} s`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: VARIANT, subject: "carillon", against: "bare Fastify route", atLeast: 0.45 }],
  cases: (world) => [
    caseOf(world, carillonOver(world, { name: "carillon" })),
    caseOf(world, {
      name: "bare Fastify route",
      settings: "JSON body, Carillon's validation, an answer of the same size; no authentication, no database",
      command: ["bench/bare-route.ts"],
      env: {},
    }),
  ],
};

export const carillonOver = (
  { databaseUrl }: World,
  { name, env = {} }: { name: string; env?: Record<string, string> },
): Subject => ({
  name,
  settings: ["carillon start with the api role alone, an API key, defaults otherwise", ...Object.entries(env)].join(
    "; ",
  ),
  command: ["src/cli/carillon.ts", "start"],
  env: {
    DATABASE_URL: databaseUrl,
    PORT: "0",
    CARILLON_API_KEY: API_KEY,
    // Delivery is another scenario's subject.
    CARILLON_ROLES: "api",
    CARILLON_LOG_LEVEL: "warn",
    ...env,
  },
  stored: () => countNotifications(databaseUrl),
});

export function caseOf(world: World, subject: Subject): Case {
  return {
    variant: VARIANT,
    subject: subject.name,
    settings: subject.settings,
    async prepare() {
      await clearCarillon(world.databaseUrl);
      const { service, url } = await startService(world, subject);
      const load = await startLoad({ url, connections: CONNECTIONS, apiKey: API_KEY });
      const warmUp = await load.run(WARM_UP_SECONDS);
      await settleStore(world.databaseUrl);
      let answered = warmUp.answers;
      return {
        processes: { service: service.pid, load: load.pid },
        async measure() {
          const users = { service: [service.pid], load: [load.pid], postgres: Object.values(world.servers) };
          const before = mapped(users, secondsOf);
          const { answers, seconds, p50Ms, p99Ms } = await load.run(SECONDS);
          answered += answers;
          const spent = mapped(users, secondsOf);
          // What a request costs each of them: on a busy machine it says more than the rate does.
          const micros = (name: keyof typeof users) => ((spent[name] - before[name]) / answers) * 1e6;
          return {
            perSecond: answers / seconds,
            p50Ms,
            p99Ms,
            serviceUs: micros("service"),
            loadUs: micros("load"),
            postgresUs: micros("postgres"),
          };
        },
        finish: () => finish(world, subject, service, load, answered),
      };
    },
  };
}

const mapped = <Name extends string>(of: Record<Name, number[]>, read: (pids: number[]) => number) =>
  Object.fromEntries(Object.entries<number[]>(of).map(([name, pids]) => [name, read(pids)])) as Record<Name, number>;

async function startService(world: World, { name, command, env }: Subject): Promise<{ service: Program; url: string }> {
  const service = await startProgram(
    process.execPath,
    [...profileFlags(world.profileDirectory, name.replaceAll(" ", "-")), ...command],
    {
      cwd: fileURLToPath(new URL("../../..", import.meta.url)),
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const listening = new Promise<string>((resolve) => {
    let printed = "";
    service.child.stdout?.on("data", (text: Buffer) => {
      printed += text;
      const url = /listening on (http:\S+)/.exec(printed)?.[1];
      if (url) resolve(url);
    });
  });
  return { service, url: await whenReady(service, name, listening) };
}

async function finish(
  { databaseUrl }: World,
  subject: Subject,
  service: Program,
  load: Load,
  answered: number,
): Promise<void> {
  await load.stop();
  await service.stop();
  const stored = await subject.stored?.();
  if (stored !== undefined && stored !== answered) {
    throw new Error(`${subject.name}: ${stored} stored of ${answered} answered with 202`);
  }
  await clearCarillon(databaseUrl);
}
