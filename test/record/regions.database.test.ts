// A request may name the region that it is to be sent from. Regions are made by naming them, and there is an end to that.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CHANNELS } from "#domain/notification.ts";
import { type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

const run = async (text: string, values: unknown[] = []) => (await service.db.query(text, values)).rows;
const notice = (region?: string) => ({ channel: "console", content: { body: "b" }, ...(region && { region }) });
const send = (region?: string) => service.ask("POST", "/v1/notifications", notice(region));
const poolOf = async (id: string) => (await run("select pool from carillon.ready where id = $1", [id]))[0]?.pool;

test("channels have the same numbers in the code and in SQL", async () => {
  const [{ numbers }] = (await run(
    "select array(select carillon.queue_pool(c, 0::smallint) from unnest($1::text[]) as c) as numbers",
    [CHANNELS],
  )) as [{ numbers: number[] }];
  assert.deepEqual(
    numbers,
    CHANNELS.map((_, n) => n + 1),
  );
});

test("a region is made by whoever names it first, over HTTP or in SQL, and is the same for all", async () => {
  const first = await send("eu-west");
  assert.equal(first.status, 202, JSON.stringify(first.body));
  const again = await send("eu-west");
  const [{ id }] = (await run("select carillon.send($1) as id", [notice("eu-west")])) as [{ id: string }];
  const none = await send();
  const pools = [];
  for (const one of [first.body.notificationId, again.body.notificationId, id, none.body.notificationId])
    pools.push(await poolOf(one));
  assert.deepEqual(pools, [23, 23, 23, 7]);
  assert.deepEqual(await run("select id, name from carillon.regions"), [{ id: 1, name: "eu-west" }]);
});

test("one region too many is refused by itself, over HTTP and in SQL, with its idempotency key unused", async () => {
  const names = Array.from({ length: 25 }, (_, n) => `r-${n}`);
  const { body } = await service.ask("POST", "/v1/notifications/batch", {
    notifications: [...names.map(notice), { ...notice("r-99"), idempotencyKey: "k" }, notice()],
  });
  const codes = body.results.map((one: { error?: { code: string } }) => one.error?.code ?? "accepted");
  const accepted = codes.filter((code: string) => code === "accepted").length;
  assert.equal(accepted, 20, JSON.stringify(codes));
  assert.equal(codes.at(-1), "accepted", "who names none is not concerned");
  assert.equal(codes.at(-2), "VALIDATION_FAILED");
  await assert.rejects(run("select carillon.send($1)", [notice("r-99")]), /VALIDATION_FAILED: \/region is new/);
  const later = await service.ask("POST", "/v1/notifications", { ...notice(), idempotencyKey: "k" });
  assert.equal(later.status, 202);
});
