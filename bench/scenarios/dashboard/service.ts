// A Carillon of the benchmark's own, over HTTP.

import { fileURLToPath } from "node:url";
import { freePort, startProgram, whenReady } from "../../program.ts";
import type { World } from "../../scenario.ts";

const CARILLON = fileURLToPath(new URL("../../../src/cli/carillon.ts", import.meta.url));
const KEY = "a-key-for-the-benchmark";
export const LOOK_MS = 200;
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export type Service = {
  pid: number;
  url: string;
  /** Throws unless it is answered well. */
  ask(path: string, body?: object): Promise<Response>;
  stop(): Promise<void>;
};

export async function startService({ databaseUrl }: World, roles: string): Promise<Service> {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const service = await startProgram(process.execPath, [CARILLON, "start"], {
    env: {
      ...{ PATH: process.env.PATH, DATABASE_URL: databaseUrl, PORT: String(port), CARILLON_API_KEY: KEY },
      ...{ CARILLON_ROLES: roles, CARILLON_LOG_LEVEL: "warn" },
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const isUp = async () => {
    while (!(await fetch(`${base}/ready`).catch(() => undefined))?.ok) await pause(LOOK_MS);
  };
  await whenReady(service, "carillon", isUp());
  return {
    pid: service.pid,
    url: base,
    async ask(path, body) {
      const headers = { authorization: `Bearer ${KEY}`, ...(body && { "content-type": "application/json" }) };
      const answer = await fetch(base + path, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      return answer;
    },
    stop: async () => {
      await service.stop();
    },
  };
}
