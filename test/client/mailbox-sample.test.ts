// What docs/mailbox.md shows is run.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { ROLES } from "#config/server.ts";
import { startService } from "../support/service.ts";

const root = join(import.meta.dirname, "../..");

test("the sample of docs/mailbox.md waits for a mail and reads the code in it", async (t) => {
  const [, code = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, "docs/mailbox.md"), "utf8")) ?? [];
  const client = pathToFileURL(join(root, "src/client/client.ts")).href;
  const folder = await mkdtemp(join(tmpdir(), "carillon-sample-"));
  const service = await startService({ roles: ROLES });
  t.after(async () => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const file = join(folder, "sample.ts");
  await writeFile(file, code.replace('"carillon/client"', JSON.stringify(client)));
  const env = { ...process.env, CARILLON_URL: service.url, CARILLON_API_KEY: service.key };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
  assert.equal(stdout, "4711\n");
});
