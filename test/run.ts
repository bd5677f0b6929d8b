// Runs the tests: all of them on the packaged PostgreSQL, those of test/database once more on an
// older one where the machine has it. One server serves all test files; each makes databases of its own.

import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { installedBinaries } from "../src/store/postgres-binaries.ts";
import { debianProgram } from "./support/debian.ts";
import { testServer } from "./support/postgres.ts";

const OLDER = [15, 14, 16, 17];
const named = process.argv.slice(2);

function olderPostgres(): number | undefined {
  debianProgram("postgresql-15", "/usr/lib/postgresql/15/bin/postgres");
  return OLDER.find((major) => installedBinaries(major));
}

async function runOn(major: number | undefined, files: string[]): Promise<boolean> {
  if (major !== undefined) process.env.CARILLON_TEST_PG_MAJOR = String(major);
  console.log(`tests on PostgreSQL ${major ?? 18}: ${files.length} files`);
  const server = await testServer();
  try {
    const args = ["--test", "--test-concurrency=3", "--test-timeout=400000", ...files];
    const child = spawn(process.execPath, args, {
      stdio: "inherit",
      env: { ...process.env, TEST_DATABASE_URL: server.url },
    });
    return (await new Promise((resolve) => child.on("exit", resolve))) === 0;
  } finally {
    await server.stop();
    delete process.env.CARILLON_TEST_PG_MAJOR;
  }
}

const files = named.length > 0 ? named : globSync("test/**/*.test.ts").sort();
let passed = await runOn(undefined, files);
const onOlder = files.filter((file) => file.includes("test/database/"));
const older = onOlder.length > 0 ? olderPostgres() : undefined;
if (older !== undefined) passed = (await runOn(older, onOlder)) && passed;
else if (onOlder.length > 0)
  console.log(`SKIPPED: ${onOlder.length} files not run on an older PostgreSQL, as none is installed`);
process.exit(passed ? 0 : 1);
