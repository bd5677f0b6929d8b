// A tenant that has more of something than anybody should: what is done with it at once is bounded, so nobody else waits for it.

import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { createAcknowledge } from "#steps/manage/acknowledge.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
const pushed: string[] = [];
before(async () => {
  service = await startService({
    roles: ["api", "worker"],
    providers: { phones: { type: "test", onSend: ({ device }) => void pushed.push(device?.token ?? "") } },
    routes: { push: "phones" } as Config["routes"],
  });
});
after(() => service.stop());

/** Items that nobody sent, of a user of the default tenant. */
async function fill(user: string, items: number): Promise<void> {
  await service.db.query("insert into carillon.inboxes (tenant, user_id, last_seq) values (1, $1, $2)", [user, items]);
  await service.db.query(
    `insert into carillon.inbox_items (tenant, user_id, seq, notification_id, title)
     select 1, $1, n, gen_random_uuid(), 'Hello' from generate_series(1, $2::int) n`,
    [user, items],
  );
}

test("an inbox, however large, is marked a thousand items at a time", async () => {
  await service.db.query(`
    create function too_many_marked() returns trigger language plpgsql as $$
    begin
      if (select count(*) from changed) > 1000 then raise 'too many at once'; end if;
      return null;
    end $$;
    create trigger too_many after update on carillon.inbox_items referencing new table as changed
      for each statement execute function too_many_marked()`);
  await fill("hoarder", 2_500);
  const { status, body } = await service.ask("POST", "/v1/inbox/hoarder/read-all");
  assert.deepEqual([status, body], [200, { marked: 2_500, unread: 0 }]);

  await fill("reader", 2_500);
  const acked = async () =>
    (await service.db.query("select count(acked_at)::int as n from carillon.inbox_items where user_id = 'reader'"))
      .rows[0].n;
  const reader = { kind: "user", tenant: 1, userId: "reader", expiresAtMs: Number.POSITIVE_INFINITY } as const;
  const acknowledge = createAcknowledge(service.db, () => undefined);
  const upTo = (seq: number) => acknowledge(reader, "reader", { verb: "position", seq });
  assert.deepEqual([await upTo(2_300), await acked()], [2_300, 2_300]);
  assert.deepEqual([await upTo(9_999), await upTo(9_999), await acked()], [200, 0, 2_500]);
});

test("what is unread is counted no further than 10,000", async () => {
  await fill("never reads", 10_500);
  const { body } = await service.ask("GET", "/v1/inbox/never%20reads/unread");
  assert.deepEqual(body, { unread: 10_000 });
});

test("of a user with thousands of devices the hundred that were registered last get a push", async () => {
  await service.db.query(
    `insert into carillon.devices (tenant, token, user_id, platform, updated_at)
     select 1, 'd' || n, 'collector', 'ios', now() - n * interval '1 s' from generate_series(1, 5000) n`,
  );
  const { body } = await service.ask("POST", "/v1/notifications", {
    channel: "push",
    recipient: { userId: "collector" },
    content: { title: "Hello" },
  });
  await until(async () => {
    const record = await service.ask("GET", `/v1/notifications/${body.notificationId}`);
    return record.body.status === "sent" ? true : undefined;
  });
  assert.equal(pushed.length, 100);
  assert.ok(pushed.includes("d1") && pushed.includes("d100"));
});

test("a tenant that begins large requests and does not end them is told to wait, and others are not", async () => {
  const [hoarder, other] = await Promise.all(
    ["hoarder", "other"].map((tenant) => service.makeKey({ tenant, scopes: ["send"] })),
  );
  const MEGABYTES = 16 * 1024 * 1024;
  const answers: (number | undefined)[] = [];
  const begun = Array.from({ length: 6 }, () => {
    const headers = {
      authorization: `Bearer ${hoarder}`,
      "content-type": "application/json",
      "content-length": MEGABYTES,
    };
    const open = request(`${service.url}/v1/notifications/batch`, { method: "POST", headers }).on("error", () => {});
    open.on("response", ({ statusCode }) => answers.push(statusCode));
    open.write("{");
    return open;
  });
  const batch = { notifications: Array.from({ length: 200 }, (_, n) => email(n)) };
  const send = (key?: string) => service.ask("POST", "/v1/notifications/batch", batch, { key: key ?? "" });
  await until(async () => (answers.length === 2 ? true : undefined));
  assert.deepEqual(answers, [429, 429], "four of them are all that fits");
  assert.equal((await send(other)).status, 200);
  for (const one of begun) one.destroy();
  await until(async () => ((await send(hoarder)).status === 200 ? true : undefined));
});
