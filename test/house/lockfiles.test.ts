// What a fresh clone installs from: lockfiles that are whole, on every platform, and good for the oldest Node we allow.

import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { onOldestNode } from "../support/oldest-node.ts";
import { temporaryHome } from "../support/postgres.ts";
import { cleanEnvironment, launch } from "../support/process.ts";

const root = join(import.meta.dirname, "..", "..");

for (const place of [".", "bench"]) {
  const lockfile = readFileSync(join(root, place, "package-lock.json"), "utf8");

  test(`npm ci finds all it needs in the lockfile of ${place}`, async (t) => {
    const folder = await temporaryHome();
    t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(root, place, file), join(folder, file));
    // Without a network and with nothing kept: a lockfile that lacks a package has to ask for it.
    const offline = ["--offline", "--cache", join(folder, "cache")];
    const npm = launch("npm", ["ci", "--dry-run", "--no-audit", "--no-fund", ...offline], {
      cwd: folder,
      env: cleanEnvironment(),
    });
    const { code, stderr } = await npm.exited;
    assert.equal(code, 0, stderr);
  });

  test(`the lockfile of ${place} names no registry, so that each machine may use its own`, () => {
    assert.doesNotMatch(lockfile, /"resolved"/);
  });
}

test("what is installed for production allows the oldest Node that we allow", async () => {
  const args = ["ci", "--dry-run", "--omit=dev", "--offline", "--no-audit", "--no-fund"];
  const { code, stderr } = await launch("npm", args, { cwd: root, env: onOldestNode(cleanEnvironment()) }).exited;
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /EBADENGINE/);
});
