// What waits to be stored when the database is slow: one tenant's flood is its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Acceptances, accept } from "#steps/walk/accept.ts";
import { email } from "../support/service.ts";

test("a tenant that fills the line is told so, and others still get in", async () => {
  const acceptances = new Acceptances({
    // A database that takes its time.
    db: { query: () => new Promise<never>(() => {}) } as unknown as ConstructorParameters<typeof Acceptances>[0]["db"],
    newId: () => crypto.randomUUID(),
    now: () => new Date(),
    abreast: 1,
    maxWaitingRows: 100,
    maxWaitingBytes: 1e6,
  });
  const of = (tenant: number, many: number) => accept(tenant, Array.from({ length: many }, email), acceptances);
  const [flood, other] = [1, 2];
  void of(flood, 100);
  await assert.rejects(of(flood, 1), { code: "OVERLOADED" });
  void of(other, 1);
  assert.equal(acceptances.waitingRows(), 101);
});
