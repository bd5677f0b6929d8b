// How long it takes to archive a week before it is dropped, and in how much memory: by a keeper of its own, to a directory and to a server
// that speaks S3.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { directoryStore } from "../../src/archive/directory.ts";
import { listManifests } from "../../src/archive/manifest.ts";
import { s3Store } from "../../src/archive/s3.ts";
import type { ArchiveStore } from "../../src/archive/store.ts";
import { migrate } from "../../src/store/connection/migrate.ts";
import { clearCarillon } from "../adapters/carillon.ts";
import { notification } from "../payload.ts";
import { freePort, startProgram, temporaryDirectory, whenReady } from "../program.ts";
import type { Case, Part, Scenario, World } from "../scenario.ts";
import { runSql, settleStore } from "../sql.ts";

const NOTIFICATIONS = Number(process.env.NOTIFICATIONS ?? 1_000_000);
const CHUNK = Math.min(100_000, NOTIFICATIONS);
/** One in five was tried twice. */
const EVENTS = NOTIFICATIONS * 1.2;
/** As it is installed: to read its sources, Node has a compiler in memory, in each of its threads. */
const CARILLON = fileURLToPath(new URL("../../dist/cli/carillon.js", import.meta.url));
const BUILD = fileURLToPath(new URL("../../scripts/build.js", import.meta.url));
const S3 = fileURLToPath(new URL("../s3-server.ts", import.meta.url));
const LOOK_MS = 50;
const run = promisify(execFile);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A week that ended half a year ago, as it is after everything was sent. Into its own tables: nobody follows what happened then. */
async function fillWeek(url: string): Promise<string> {
  await clearCarillon(url);
  await migrate(url);
  const [made] = await runSql<{ week: string; at: string }>(
    url,
    `select at::text, to_char(at at time zone 'UTC', 'YYYYMMDD') as week, carillon.make_partitions(at, at)
     from (select date_trunc('week', now() - interval '180 days', 'UTC') as at) x`,
  );
  const { week = "", at = "" } = made ?? {};
  const request = JSON.stringify(notification(0)).replaceAll("'", "''");
  for (let from = 0; from < NOTIFICATIONS; from += CHUNK) {
    await runSql(
      url,
      `with stored as (
         insert into carillon.notifications_${week} (tenant, id, seq, channel, priority, user_id, accepted_at, request, pool)
         select 1, overlay(carillon.first_id(x.at)::text placing right(gen_random_uuid()::text, 22) from 15)::uuid, nextval('carillon.acceptance'), 'console', 2,
           'user ' || x.n % 50000, x.at, '${request}'::json, carillon.queue_pool('console', 0::smallint)
         from (select n, '${at}'::timestamptz + n * interval '0.6 s' as at from generate_series(${from + 1}, ${from + CHUNK}) as n) x
         returning tenant, id, seq, accepted_at
       )
       insert into carillon.events_${week} (notification_id, tenant, at, type, from_status, to_status, attempt, token, worker, started_at, provider, outcome, latency_ms)
       select s.id, s.tenant, s.accepted_at + t.n * interval '2 s', 'attempt', 'processing', (case t.n when t.tries then 'sent' else 'pending' end)::carillon.status,
         t.n, s.seq, 1, s.accepted_at, 'console', case t.n when t.tries then 'accepted' else 'unavailable' end, 3.5
       from stored s, lateral (select n, tries from (select case s.seq % 5 when 0 then 2 else 1 end as tries) x, generate_series(1, x.tries) as n) t`,
    );
  }
  await settleStore(url);
  return week;
}

type Place = {
  variables: { [name: string]: string };
  store: ArchiveStore;
  processes: { [name: string]: number };
  stop(): Promise<void>;
};

async function inDirectory(): Promise<Place> {
  const directory = await temporaryDirectory("archive");
  const store = directoryStore(directory);
  return { variables: { CARILLON_ARCHIVE_DIRECTORY: directory }, store, processes: {}, stop: async () => {} };
}

async function inBucket(): Promise<Place> {
  const server = await startProgram(process.execPath, [S3], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const heard = new Promise<{ port: number }>((resolve) =>
    server.child.once("message", (said) => resolve(said as { port: number })),
  );
  const { port } = await whenReady(server, "S3", heard);
  const settings = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket: "bench",
    prefix: "",
    region: "us-east-1",
    pathStyle: true,
    sse: undefined,
  };
  const store = s3Store({
    ...settings,
    credentials: { kind: "keys", keys: { accessKeyId: "bench", secretAccessKey: "bench" } },
  });
  const { endpoint, bucket } = settings;
  return {
    variables: {
      ...{ CARILLON_ARCHIVE_ENDPOINT: endpoint, CARILLON_ARCHIVE_BUCKET: bucket },
      ...{ CARILLON_ARCHIVE_ACCESS_KEY_ID: "bench", CARILLON_ARCHIVE_SECRET_ACCESS_KEY: "bench" },
    },
    store,
    processes: { s3: server.pid },
    async stop() {
      await store.close();
      await server.stop();
    },
  };
}

/** The most that it ever had, in megabytes; 0 where nobody tells. */
function peakMemory(pid: number): number {
  if (process.platform !== "linux") return 0;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_000;
}

const archiving = (world: World, subject: string, open: () => Promise<Place>): Case => ({
  variant: "a week",
  subject,
  settings: "a process with the role keeper alone, defaults; from its start until the week is dropped",
  async prepare() {
    await run(process.execPath, [BUILD]);
    const week = await fillWeek(world.databaseUrl);
    const place = await open();
    const env = {
      ...{ PATH: process.env.PATH, DATABASE_URL: world.databaseUrl, PORT: String(await freePort()) },
      ...{ CARILLON_ROLES: "keeper", CARILLON_LOG_LEVEL: "warn", ...place.variables },
    };
    const isThere = async () =>
      (
        await runSql<{ it: string | null }>(
          world.databaseUrl,
          `select to_regclass('carillon.notifications_${week}')::text as it`,
        )
      )[0]?.it != null;
    return {
      processes: place.processes,
      async measure() {
        const startedAt = performance.now();
        const keeper = await startProgram(process.execPath, [CARILLON, "start"], {
          env,
          stdio: ["ignore", "ignore", "inherit"],
        });
        while (await isThere()) await pause(LOOK_MS);
        const seconds = (performance.now() - startedAt) / 1000;
        const peakMb = peakMemory(keeper.pid);
        await keeper.stop();
        return { seconds, peakMb };
      },
      async finish() {
        const manifests = await listManifests(place.store, "");
        const [notifications, events] = [manifests[0]?.notifications, manifests[0]?.events];
        await place.stop();
        await clearCarillon(world.databaseUrl);
        if (notifications !== NOTIFICATIONS || events !== EVENTS) {
          throw new Error(`the archive has ${notifications} notifications with ${events} events`);
        }
      },
    };
  },
});

const week: Part = {
  title: `${NOTIFICATIONS.toLocaleString("en")} notifications with ${EVENTS.toLocaleString("en")} events, archived, read back and dropped`,
  figure: { name: "seconds", unit: "s" },
  targets: ["directory", "S3"].map((subject) => ({ variant: "a week", subject, limits: { seconds: 60, peakMb: 200 } })),
  cases: (world) => [archiving(world, "directory", inDirectory), archiving(world, "S3", inBucket)],
};

export const archive: Scenario = {
  summary: "how long it takes to archive a week, and in how much memory",
  parts: { week },
};
