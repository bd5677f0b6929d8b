// A mutant that is none would pass for a checker that is blind.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BROKER_MUTATIONS } from "../../chaos/brokers/mutations.ts";
import { isInDatabase, MUTATIONS, mutate, mutateRoutine } from "../../chaos/mutations.ts";

const root = join(import.meta.dirname, "..", "..");

test("what each mutation breaks stands in the source, once", () => {
  for (const [mutant, mutation] of Object.entries({ ...MUTATIONS, ...BROKER_MUTATIONS })) {
    const source = readFileSync(join(root, mutation.file), "utf8");
    assert.doesNotThrow(() => mutate(mutation, source), mutant);
    assert.notEqual(mutate(mutation, source), source);
    if (isInDatabase(mutation)) assert.match(mutateRoutine(mutation, source), /^create or replace function carillon/);
  }
});
