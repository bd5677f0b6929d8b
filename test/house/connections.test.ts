// docs/configuration.md lists the connections of a process as they are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mostConnections, openDatabase } from "#store/connection/database.ts";

test("docs/configuration.md says how many connections each pool has, and how many all have together", async () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "configuration.md"), "utf8");
  const listed = [...page.matchAll(/^\| `([a-z]+)` \| (?:`[A-Z_]+` \()?(\d+)\)?(?: \+ (\d+))? \|/gm)].map(
    ([, name, count, more = 0]) => [name, Number(count) + Number(more)] as const,
  );
  const database = openDatabase({
    url: "postgres://nobody@localhost/nothing",
    acceptConnections: 2,
    connections: 10,
    onError: () => {},
  });
  const pools = Object.entries(database.pools).map(([name, pool]) => [name, pool.options.max] as const);
  await database.close();
  assert.deepEqual(
    listed.filter(([name]) => name !== "watch"),
    pools,
  );
  const of = (...names: string[]) =>
    pools.filter(([name]) => names.length === 0 || names.includes(name)).reduce((sum, [, max]) => sum + max, 0);
  // One listens for hints, one for the stream and one for the mailbox; two are of the thread that archives.
  assert.equal(mostConnections(2, 10), of() + 5);
  const said = `at most ${of() + 5} a process with the defaults and all roles, and ${of("work", "own", "house") + 1} with`;
  assert.ok(page.includes(said), said);
});
