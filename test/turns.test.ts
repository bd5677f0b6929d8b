// Turns between tenants, without a database.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../src/domain/problems.ts";
import { createTurns } from "../src/http/turns.ts";

/** Work that ends when it is told to. */
function scene(options: Partial<Parameters<typeof createTurns>[0]> = {}) {
  const turns = createTurns({ abreast: 4, perTenant: 2, line: 3, patienceMs: 60_000, ...options });
  const begun: string[] = [];
  const endings = new Map<string, () => void>();
  const ask = (tenant: number, name: string) =>
    turns(tenant, () => {
      begun.push(name);
      return new Promise<string>((resolve) => endings.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    endings.get(name)?.();
    for (let n = 0; n < 5; n++) await Promise.resolve();
  };
  return { ask, end, begun };
}

test("one tenant has no more than its part, and another finds the rest free", async () => {
  const { ask, end, begun } = scene();
  const first = [ask(1, "a1"), ask(1, "a2"), ask(1, "a3")];
  void ask(2, "b1");
  assert.deepEqual(begun, ["a1", "a2", "b1"]);
  await end("a1");
  assert.equal(await first[0], "a1");
  assert.deepEqual(begun, ["a1", "a2", "b1", "a3"]);
});

test("whoever has waited goes before whoever was just served", async () => {
  const { ask, end, begun } = scene({ abreast: 1, perTenant: 1 });
  for (const name of ["a1", "a2", "a3"]) void ask(1, name);
  for (const name of ["b1", "b2"]) void ask(2, name);
  void ask(3, "c1");
  for (const name of ["a1", "a2", "b1", "c1", "a3"]) await end(name);
  assert.deepEqual(begun, ["a1", "a2", "b1", "c1", "a3", "b2"]);
});

test("a line that is full says so at once, to its own tenant only", async () => {
  const { ask, begun } = scene({ line: 1 });
  for (const name of ["a1", "a2", "a3"]) void ask(1, name);
  await assert.rejects(ask(1, "a4"), (error) => error instanceof Problem && error.code === "TOO_MANY_REQUESTS");
  void ask(2, "b1");
  assert.deepEqual(begun, ["a1", "a2", "b1"]);
});

test("whoever waits in vain is told so, and its turn goes to the next", async () => {
  const { ask, end, begun } = scene({ abreast: 1, patienceMs: 1 });
  void ask(1, "a1");
  await assert.rejects(ask(1, "a2"), (error) => error instanceof Problem && error.code === "OVERLOADED");
  await end("a1");
  void ask(2, "b1");
  assert.deepEqual(begun, ["a1", "b1"]);
});

test("what fails gives its turn back", async () => {
  const turns = createTurns({ abreast: 1, perTenant: 1, line: 1, patienceMs: 60_000 });
  await assert.rejects(
    turns(1, () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await turns(2, () => "yes"), "yes");
});
