// The OpenAPI document is true: schemathesis asks every operation for what the document allows and for what it forbids, and
// compares the answers. What it leaves out, and why, stands in schemathesis.toml.
//
// CARILLON_FUZZ_SEED and CARILLON_FUZZ_EXAMPLES ask for other and for more cases.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { cache, pythonWith } from "../support/python.ts";
import { ADMIN_KEY, startService } from "../support/service.ts";

const run = promisify(execFile);
const WANTED = "schemathesis==4.32.*";
const config = join(import.meta.dirname, "schemathesis.toml");
const { CARILLON_FUZZ_SEED: seed = "1", CARILLON_FUZZ_EXAMPLES: examples = "" } = process.env;

const python = await pythonWith("schemathesis-4.32", WANTED);
const missing = "missing" in python ? python.missing : undefined;
const home = "home" in python ? python.home : "";
if (missing) process.stdout.write(`SKIPPED: the OpenAPI document was not fuzzed: ${missing}\n`);

test("whatever the OpenAPI document allows or forbids, the answers are as it says", {
  skip: missing ?? false,
}, async () => {
  const service = await startService({ roles: ["api", "stream"], secretKeys: [randomBytes(32)] });
  try {
    const args = ["--config-file", config, "--no-color", "run", `${service.url}/openapi.json`, "--seed", seed];
    const more = examples === "" ? [] : ["--max-examples", examples];
    const header = ["--header", `Authorization: Bearer ${ADMIN_KEY}`];
    // The script that pip made names the directory in which it was made.
    const command = [join(home, "bin/st"), ...args, ...more, ...header];
    const found = await run(join(home, "bin/python"), command, { cwd: cache, maxBuffer: 2 ** 28 }).then(
      () => undefined,
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    assert.ok(found === undefined, found);
  } finally {
    await service.stop();
  }
});
