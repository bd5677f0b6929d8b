// A mutant that is none would pass for a checker that is blind.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MUTANTS, MUTATIONS } from "../../chaos/mutations.ts";

const root = join(import.meta.dirname, "..", "..");

test("what each mutation breaks stands in the source, once", () => {
  for (const mutant of MUTANTS) {
    const { file, from, to } = MUTATIONS[mutant];
    const source = readFileSync(join(root, file), "utf8");
    assert.equal(source.match(new RegExp(from, "g"))?.length, 1, `${mutant} in ${file}`);
    assert.notEqual(source.replace(from, to), source);
  }
});
