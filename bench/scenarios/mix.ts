// A minute of everyday: notifications come in over HTTP at a steady pace while they are delivered. Nothing may pile up:
// neither the queue, nor memory, nor dead rows.

import { readFileSync } from "node:fs";
import { clearCarillon } from "../adapters/carillon.ts";
import { notification } from "../payload.ts";
import { freePort, startProgram, whenReady } from "../program.ts";
import type { Scenario, World } from "../scenario.ts";
import { count, runSql } from "../sql.ts";

const PER_SECOND = 2_000;
const SECONDS = 60;
const TICK_MS = 10;
const KEY = "benchmark-key";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const deadRows = async (url: string): Promise<number> => {
  const [row] = await runSql<{ n: string }>(
    url,
    "select sum(n_dead_tup) as n from pg_stat_user_tables where schemaname = 'carillon' and relname in ('ready', 'claims')",
  );
  return Number(row?.n ?? 0);
};

async function startService(world: World) {
  const port = await freePort();
  const program = await startProgram(
    process.execPath,
    [new URL("../../src/cli/carillon.ts", import.meta.url).pathname, "start"],
    {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        DATABASE_URL: world.databaseUrl,
        PORT: String(port),
        CARILLON_API_KEY: KEY,
        CARILLON_LOG_LEVEL: "error",
        CARILLON_PROVIDERS: '{"noop":{"type":"test"}}',
        CARILLON_ROUTES: '{"email":"noop"}',
      },
    },
  );
  const listening = new Promise<void>((resolve) => {
    program.child.stdout?.on("data", (text) => {
      if (String(text).includes("listening")) resolve();
    });
  });
  await whenReady(program, "carillon", listening);
  return { program, url: `http://127.0.0.1:${port}/v1/notifications` };
}

async function run(world: World, pid: number, url: string) {
  let sent = 0;
  let failed = 0;
  const send = (i: number) =>
    fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify(notification(i)),
    }).then(
      async (answer) => {
        await answer.arrayBuffer();
        if (answer.status === 202) sent++;
        else failed++;
      },
      () => failed++,
    );
  const depths: number[] = [];
  const sizes: number[] = [];
  let dead = 0;
  const startedAt = performance.now();
  let asked = 0;
  for (let second = 0; second < SECONDS; second++) {
    while (performance.now() - startedAt < (second + 1) * 1000) {
      const due = Math.min(((performance.now() - startedAt) / 1000) * PER_SECOND, (second + 1) * PER_SECOND);
      while (asked < due) void send(asked++);
      await pause(TICK_MS);
    }
    depths.push(await count(world.databaseUrl, "carillon.ready"));
    sizes.push(residentMiB(pid));
    dead = Math.max(dead, await deadRows(world.databaseUrl));
  }
  const half = sizes.length / 2;
  return {
    sentPerSecond: sent / SECONDS,
    failed,
    mostWaiting: Math.max(...depths),
    residentFirstHalfMiB: Math.max(...sizes.slice(0, half)),
    residentSecondHalfMiB: Math.max(...sizes.slice(half)),
    mostDeadRows: dead,
  };
}

export const mix: Scenario = {
  summary: `${PER_SECOND} notifications a second over HTTP for ${SECONDS} s, delivered as they come`,
  parts: {
    steady: {
      title: `${PER_SECOND} a second over HTTP, accepted and delivered by one process, ${SECONDS} s`,
      figure: { name: "sentPerSecond", unit: "/s" },
      targets: [],
      cases: (world) => [
        {
          variant: "steady",
          subject: "carillon",
          settings: "defaults, all roles",
          async prepare() {
            await clearCarillon(world.databaseUrl);
            const { program, url } = await startService(world);
            return {
              processes: { service: program.pid },
              measure: () => run(world, program.pid, url),
              async finish() {
                await program.stop();
                await clearCarillon(world.databaseUrl);
              },
            };
          },
        },
      ],
    },
  },
};
