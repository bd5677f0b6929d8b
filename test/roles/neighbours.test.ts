// What a tenant can do to another with a `send` key alone: his flood is begun beside the other's, never before it.
//
// Sends are counted, not time: how many of the flood began while one of the other's waited. The bounds are far above what is begun
// during a claim on a busy machine, and far below the flood.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { TestProviderOptions } from "#channels/dev/test.ts";
import type { Config } from "#config/read.ts";
import { mail, many, type Neighbours, startNeighbours } from "../support/neighbours.ts";
import { until } from "../support/until.ts";

const FLOOD = 2_000;
const BOUND = 200;
const SAMPLES = 4;

async function neighbours(t: TestContext, post: TestProviderOptions, config: Partial<Config> = {}) {
  const both = await startNeighbours(post, config);
  t.after(both.stop);
  return both;
}

/** The flood is being sent, and far from over. */
async function isUnderWay({ work, begunOf }: Neighbours): Promise<void> {
  await work();
  await until(async () => (begunOf("hostile") >= 50 ? true : undefined));
}

/** `others` are one after the other; each is begun soon. */
async function assertGoBeside(both: Neighbours, others = many(SAMPLES, () => mail())): Promise<void> {
  for (const [n, request] of others.entries()) {
    const passed = await both.passedBy(request);
    assert.ok(passed <= BOUND, `${passed} of the flood were begun before the other's, number ${n}`);
  }
}

for (const priority of ["urgent", "normal"] as const) {
  test(`a flood of ${priority} ones passes nobody else's ${priority} one`, async (t) => {
    const both = await neighbours(t, { latencyMs: 10 });
    await both.send(
      "hostile",
      many(FLOOD, () => mail({ priority })),
    );
    await isUnderWay(both);
    await assertGoBeside(
      both,
      many(SAMPLES, () => mail({ priority })),
    );
  });
}

test("a flood of normal ones passes nobody's urgent one, not even one's own", async (t) => {
  const both = await neighbours(t, { latencyMs: 10 });
  await both.send(
    "hostile",
    many(FLOOD, () => mail()),
  );
  await isUnderWay(both);
  await assertGoBeside(
    both,
    many(SAMPLES, () => mail({ priority: "urgent" })),
  );
  const [own = ""] = await both.send("hostile", [mail({ priority: "urgent" })]);
  const before = both.begun.length;
  const passed = (await both.placeOf(own)) - before;
  assert.ok(passed <= BOUND, `${passed} of his own were begun before it`);
});

test("sends that take very long keep nobody else's waiting, and leave room for what is urgent", async (t) => {
  const isHostile = (tenant: number) => both.sides.get(tenant) === "hostile";
  const both: Neighbours = await neighbours(t, {
    latencyMs: 1,
    decide: ({ tenant, request }) => (isHostile(tenant) && request.priority !== "urgent" ? "silent" : "accepted"),
  });
  await both.send(
    "hostile",
    many(500, () => mail()),
  );
  await both.work();
  await until(async () => (both.begunOf("hostile") >= 5 ? true : undefined));
  await assertGoBeside(both);
  const [own = ""] = await both.send("hostile", [mail({ priority: "urgent" })]);
  await both.placeOf(own);
});

test("what comes due at one instant passes nobody, neither what comes then nor what is due with it", async (t) => {
  const both = await neighbours(t, { latencyMs: 10 });
  const scheduledFor = new Date(Date.now() + 1_500).toISOString();
  await both.send(
    "hostile",
    many(FLOOD, () => mail({ scheduledFor })),
  );
  const [due = ""] = await both.send("other", [mail({ scheduledFor })]);
  await isUnderWay(both);
  await assertGoBeside(both);
  const passed = await both.placeOf(due);
  assert.ok(passed <= BOUND, `${passed} were begun before what was due with them`);
});

test("who cancels much of his flood holds up nobody, and is not behind with what he sends afterwards", async (t) => {
  const both = await neighbours(t, { latencyMs: 10 });
  const { service, keys } = both;
  const flood = await both.send(
    "hostile",
    many(FLOOD, () => mail()),
  );
  const key = keys.hostile;
  const cancel = (id: string) => service.ask("POST", `/v1/notifications/${id}/cancel`, undefined, { key });
  await Promise.all(flood.slice(-FLOOD / 2).map(cancel));
  await both.send(
    "other",
    many(FLOOD, () => mail()),
  );
  await isUnderWay(both);
  await until(async () => (both.begunOf("hostile") >= FLOOD / 2 ? true : undefined));
  // Now the other has the flood.
  const [own = ""] = await both.send("hostile", [mail()]);
  const before = both.begun.length;
  const passed = (await both.placeOf(own)) - before;
  assert.ok(passed <= BOUND, `${passed} of the other's were begun before his`);
  assert.ok(both.begunOf("other") >= FLOOD / 4, `the other had ${both.begunOf("other")} of the turns`);
});

test("texts that take long to fill keep nobody else's waiting", async (t) => {
  const both = await neighbours(t, {});
  const { service } = both;
  const texts = {
    hostile: `{% assign a = (1..100000) %}{% assign b = a | where_exp: "i", "${"i > 2 and ".repeat(500)}i > 2" %}`,
    other: "Hello",
  };
  for (const side of ["hostile", "other"] as const) {
    const key = await service.makeKey({ tenant: side, scopes: ["admin"] });
    const template = { channel: "email", name: "n", content: { subject: "s", textBody: texts[side] } };
    const { status, body } = await service.ask("PUT", "/v1/templates/text", template, { key });
    assert.ok(status < 300, JSON.stringify(body));
  }
  const filled = mail({ content: { templateId: "text" } });
  await both.send(
    "hostile",
    many(40, () => filled),
  );
  await both.work();
  const endings = async () => {
    const { rows } = await service.db.query("select count(*)::int as n from carillon.events where type = 'attempt'");
    return rows[0].n;
  };
  await until(async () => ((await endings()) > 0 ? true : undefined));
  await assertGoBeside(both, [filled, mail(), filled]);
  assert.ok((await endings()) < 40, "all of the hostile one's had been filled by then");
});

test("large ones that get no answer leave room for another's", async (t) => {
  const large = mail({ content: { subject: "s", textBody: "x".repeat(240_000) } });
  const both = await neighbours(
    t,
    { decide: ({ request }) => (request.content.textBody === large.content.textBody ? "silent" : undefined) },
    { concurrency: 200, sendTimeoutMs: 60_000, drainMs: 100 },
  );
  const ten = many(10, () => large);
  for (let n = 0; n < 30; n++) await both.send("hostile", ten);
  await isUnderWay(both);
  await assertGoBeside(both);
});
