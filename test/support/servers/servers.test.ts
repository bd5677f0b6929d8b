// That no server outlives whoever started it, however that one ends.

import assert from "node:assert/strict";
import { existsSync, readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cleanEnvironment, gone, isAlive, launch } from "../process.ts";

const root = join(import.meta.dirname, "../../..");

for (const name of ["kafka", "rabbitmq", "clickhouse", "redis"])
  for (const signal of ["SIGKILL", "SIGINT"] as const)
    test(`${name} ends when ${signal} ends the process that started it`, async (t) => {
      const script = launch(process.execPath, ["scripts/servers.ts", name], { cwd: root, env: cleanEnvironment() });
      t.after(() => script.end("SIGKILL"));
      const [, pid, why] = await script.says(/\(process (\d+)\)|^\w+: (there is no .*)$/m);
      if (why !== undefined) return t.skip(why);
      const server = Number(pid);

      const directory = homeOf(server);
      t.after(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
      assert.ok(isAlive(server) && existsSync(directory));
      process.kill(script.pid, signal);
      await script.exited;
      await gone(server);
      if (signal === "SIGINT") assert.ok(!existsSync(directory), `${directory} is still there`);
    });

/** Where its output goes. */
const homeOf = (pid: number) => join(readlinkSync(`/proc/${pid}/fd/1`), "..");
