// The models say what the docs say, and hold. `npm run models` goes through all of it; here the bounds are smaller, and only the mutants of a
// small model are tried.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findTools, NO_SPIN, readModels, verify } from "../support/models.ts";

const docs = join(import.meta.dirname, "..", "..", "docs");
const models = readModels();
const tools = findTools();
const SMALL = ["lease"];
const options = { timeout: 600_000, skip: tools ? false : NO_SPIN };

/** Rows of tables with such a first heading. */
function rowsUnder(page: string, heading: string): string[][] {
  const tables = readFileSync(join(docs, page), "utf8").matchAll(/(?:^\|.*\|\n)+/gm);
  return [...tables].flatMap(([table]) => {
    const [head = [], , ...rows] = table
      .trim()
      .split("\n")
      .map((line) => line.slice(2, -2).split(" | "));
    return head[0] === heading ? rows : [];
  });
}

test("every rule has a mutant, and every switch of a model is one", () => {
  assert.deepEqual(
    models.map(({ name }) => name),
    ["handoff", "lease", "migration", "take"],
  );
  for (const { name, rules, switches } of models)
    assert.deepEqual(
      switches.filter((word) => word !== "ENDS" && word !== "QUICK"),
      rules.map(({ mutant }) => mutant).sort(),
      name,
    );
});

test("docs/models.md has the rules as the models have them", () => {
  assert.deepEqual(
    rowsUnder("models.md", "model"),
    models.flatMap(({ name, rules }) =>
      rules.map(({ mutant, rule, breaks }) => [`\`${name}\``, rule, `\`${mutant}\``, breaks]),
    ),
  );
});

test("every rule in a table of docs/engines.md names its mutant", () => {
  const known = new Set(models.flatMap(({ rules }) => rules.map(({ mutant }) => mutant)));
  const rows = rowsUnder("engines.md", "rule");
  const unknown = rows.filter(
    (cells) => ![...cells.join(" ").matchAll(/`([A-Z_]+)`/g)].some(([, word = ""]) => known.has(word)),
  );
  assert.deepEqual(unknown, []);
});

for (const model of models) {
  test(`${model.name}: nothing forbidden happens, and everything ends`, options, async () => {
    assert.equal((await verify(tools as NonNullable<typeof tools>, model, { isQuick: true })).broke, undefined);
  });
  for (const { mutant, rule } of SMALL.includes(model.name) ? model.rules : [])
    test(`${model.name} breaks without ${mutant}: ${rule}`, options, async () => {
      assert.notEqual((await verify(tools as NonNullable<typeof tools>, model, { mutant })).broke, undefined);
    });
}
