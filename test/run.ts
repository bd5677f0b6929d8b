// Runs the tests: all of them on the packaged PostgreSQL, those named *.database.test.ts once more on an
// older one where the machine has it. One server serves all test files; each makes databases of its own.
// The last line counts what was left out, so that nobody takes a part for the whole.
//
// With --again, as CI has it, a file in which something failed is run once more, by itself: what fails then has failed, and what passes
// is named at the end as unsteady, which is a defect of that test. Without it everything passes at once or not at all.

import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { installedBinaries } from "#embedded/postgres-binaries.ts";
import { findChromium } from "./support/chromium.ts";
import { debianProgram } from "./support/debian.ts";
import { testServer } from "./support/postgres.ts";

const OLDER = [15, 14, 16, 17];
/** Most of what a file does is to wait. */
const FILES_AT_A_TIME = 6;
const isAgain = process.argv.includes("--again");
const named = process.argv.slice(2).filter((argument) => argument !== "--again");
const reasonsToSkip: string[] = [];
const unsteady: string[] = [];
// Every file is a process of its own, and reads the same sources as the others.
const compiled = mkdtempSync(join(tmpdir(), "carillon-test-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
process.on("exit", () => rmSync(compiled, { recursive: true, force: true, maxRetries: 5 }));

function olderPostgres(): number | undefined {
  const installed = OLDER.find((major) => installedBinaries(major));
  if (installed !== undefined) return installed;
  return debianProgram("postgresql-15", "/usr/lib/postgresql/15/bin/postgres") === undefined ? undefined : 15;
}

async function runOn(major: number | undefined, files: string[]): Promise<boolean> {
  if (major !== undefined) process.env.CARILLON_TEST_PG_MAJOR = String(major);
  console.log(`tests on PostgreSQL ${major ?? 18}: ${files.length} files`);
  const server = await testServer();
  process.env.TEST_DATABASE_URL = server.url;
  process.env.TEST_TEMPLATE = await server.makeTemplate();
  try {
    const failed = await failedOf(files, FILES_AT_A_TIME);
    if (failed.length === 0 || !isAgain) return failed.length === 0;
    console.log(`\nonce more, by themselves: ${failed.join(", ")}`);
    const stillFailed = await failedOf(failed, 1);
    unsteady.push(...failed.filter((file) => !stillFailed.includes(file)));
    return stillFailed.length === 0;
  } finally {
    await server.stop();
    delete process.env.CARILLON_TEST_PG_MAJOR;
  }
}

/** Runs them, so many at a time, and answers with those in which something failed. */
async function failedOf(files: string[], concurrency: number): Promise<string[]> {
  const tests = run({ files, concurrency, execArgv: ["--import", new URL("support/ends.ts", import.meta.url).href] });
  const failed = new Set<string>();
  let passed = false;
  tests.on("test:summary", ({ file, success }) => {
    if (file === undefined) passed = success;
    else if (!success) failed.add(relative(process.cwd(), file));
  });
  // Of a file that does not come to its end there is no summary.
  tests.on("test:fail", ({ file }) => {
    if (file !== undefined) failed.add(relative(process.cwd(), file));
  });
  tests.on("test:pass", ({ skip }) => {
    if (skip !== undefined && skip !== false) reasonsToSkip.push(String(skip));
  });
  const report = tests.compose(spec);
  report.pipe(process.stdout);
  await finished(report);
  // If it cannot be told which, all of them.
  return passed ? [] : failed.size > 0 ? [...failed] : files;
}

const files = named.length > 0 ? named : globSync("test/**/*.test.ts").sort();
// Unpacked now if need be, and not by several files at once.
if (files.some((file) => file.includes("web/"))) await findChromium();
let passed = await runOn(undefined, files);
const onOlder = files.filter((file) => file.endsWith(".database.test.ts"));
const older = onOlder.length > 0 ? olderPostgres() : undefined;
if (older !== undefined) passed = (await runOn(older, onOlder)) && passed;
else reasonsToSkip.push(...onOlder.map(() => "a file once more, on an older PostgreSQL: none is installed"));

const counts = new Map<string, number>();
for (const reason of reasonsToSkip) counts.set(reason, (counts.get(reason) ?? 0) + 1);
const reasons = [...counts].map(([reason, count]) => `${count} × ${reason}`);
if (unsteady.length > 0) console.log(`\nUNSTEADY, PASSED ONLY WHEN RUN AGAIN: ${unsteady.join(", ")}`);
if (reasons.length > 0) console.log(`\nSKIPPED ${reasonsToSkip.length} TESTS: ${reasons.join("; ")}`);
process.exit(passed ? 0 : 1);
