// Reading, listing, cancelling, counting.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const send = async (request: object): Promise<string> => {
  const { status, body } = await service.ask("POST", "/v1/notifications", { ...email(), ...request });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
};
const list = async (query: string) => {
  const { status, body } = await service.ask("GET", `/v1/notifications?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return {
    ids: body.data.map(({ notificationId }: { notificationId: string }) => notificationId) as string[],
    next: body.nextCursor,
  };
};
const cancel = (id: string) => service.ask("POST", `/v1/notifications/${id}/cancel`);
const ledger = async () => (await service.ask("GET", "/v1/ledger")).body;
const recipient = (userId: string) => ({ recipient: { userId, email: "ada@example.com" } });

test("an unknown id, and an id that cannot be one, are 404", async () => {
  for (const id of ["0197b6a0-0000-7000-8000-000000000000", "17", "'; drop table x; --", "%00"]) {
    const { status, body } = await service.ask("GET", `/v1/notifications/${id}`);
    assert.deepEqual([status, body.code], [404, "NOT_FOUND"], id);
  }
});

test("each filter finds its own and nothing else", async () => {
  const since = new Date(Date.now() - 1000).toISOString();
  const plain = await send(recipient("f"));
  const urgent = await send({ ...recipient("f"), priority: "urgent" });
  const sms = await send({ channel: "sms", recipient: { userId: "f", phone: "+33612345678" }, content: { body: "b" } });
  const later = await send({ ...recipient("f"), scheduledFor: "2099-01-01T00:00:00Z" });
  const tagged = await send({ ...recipient("f"), metadata: { orderId: "17", n: 5, "odd key": "x=y&z" } });
  const gone = await send(recipient("f"));
  assert.equal((await cancel(gone)).status, 200);

  const found = async (query: string) => (await list(`userId=f&${query}`)).ids.sort();
  assert.deepEqual(await found(""), [plain, urgent, sms, later, tagged, gone].sort());
  assert.deepEqual(await found("priority=urgent"), [urgent]);
  assert.deepEqual(await found("channel=sms"), [sms]);
  assert.deepEqual(await found("status=pending"), [later]);
  assert.deepEqual(await found("status=cancelled"), [gone]);
  assert.deepEqual(await found("status=queued"), [plain, urgent, sms, tagged].sort());
  assert.deepEqual(await found("status=sent"), []);
  assert.deepEqual(await found("metadata.orderId=17"), [tagged]);
  assert.deepEqual(await found("metadata.orderId=17&metadata.n=5"), [tagged]);
  assert.deepEqual(await found(`metadata.odd%20key=${encodeURIComponent("x=y&z")}`), [tagged]);
  assert.deepEqual(await found("metadata.orderId=18"), []);
  assert.deepEqual(await found("provider=smtp"), []);
  assert.equal((await found(`since=${since}`)).length, 6);
  assert.deepEqual(await found(`until=${since}`), []);
  assert.deepEqual((await list("userId=somebody-else")).ids, []);
});

test("a query that makes no sense is refused with each fault named", async () => {
  const { status, body } = await service.ask(
    "GET",
    "/v1/notifications?limit=0&status=lost&colour=red&since=yesterday&cursor=%21&channel=a&channel=b&metadata.=x",
  );
  assert.equal(status, 422);
  const paths = body.errors.map(({ path }: { path: string }) => path).sort();
  assert.deepEqual(paths, ["/channel", "/colour", "/cursor", "/limit", "/metadata.", "/since", "/status"]);
  assert.equal((await service.ask("GET", "/v1/notifications?cursor=%21")).status, 422);
  assert.equal((await service.ask("GET", "/v1/notifications?limit=201")).status, 422);
});

test("pages are stable while notifications arrive: nothing is missed, nothing is shown twice", async () => {
  const ids: string[] = [];
  for (let n = 0; n < 45; n++) ids.push(await send(recipient("paging")));
  const seen: string[] = [];
  let cursor: string | null = "";
  do {
    const page: { ids: string[]; next: string | null } = await list(
      `userId=paging&limit=10${cursor && `&cursor=${cursor}`}`,
    );
    assert.ok(page.ids.length <= 10);
    seen.push(...page.ids);
    cursor = page.next;
    await send(recipient("paging"));
  } while (cursor);
  assert.deepEqual(seen, ids.reverse());
});

test("a rare filter over many notifications goes on page by page and finds every match", async () => {
  // A page looks at 20,000 notifications at most; put the match deeper than that.
  const key = await service.makeKey({ tenant: "deep", scopes: ["send", "read"] });
  const ask = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key });
  const { body: match } = await ask("POST", "/v1/notifications", { ...email(), metadata: { rare: "yes" } });
  for (let n = 0; n < 21; n++) {
    await ask("POST", "/v1/notifications/batch", { notifications: Array.from({ length: 1000 }, (_, i) => email(i)) });
  }
  const first = await ask("GET", "/v1/notifications?metadata.rare=yes");
  assert.deepEqual(first.body.data, []);
  assert.ok(first.body.nextCursor);
  const second = await ask("GET", `/v1/notifications?metadata.rare=yes&cursor=${first.body.nextCursor}`);
  assert.deepEqual(
    second.body.data.map(({ notificationId }: { notificationId: string }) => notificationId),
    [match.notificationId],
  );
  assert.equal(second.body.nextCursor, null);
});

test("what waits can be cancelled once, and its record says so", async () => {
  for (const request of [{}, { scheduledFor: "2099-01-01T00:00:00Z" }]) {
    const id = await send(request);
    const first = await cancel(id);
    assert.deepEqual([first.status, first.body], [200, { notificationId: id, cancelled: true }]);
    const second = await cancel(id);
    assert.equal(second.status, 409);
    assert.deepEqual(
      [second.body.notificationId, second.body.cancelled, second.body.reason, second.body.code],
      [id, false, "the notification is cancelled", "NOT_CANCELLABLE"],
    );
    const { body } = await service.ask("GET", `/v1/notifications/${id}`);
    assert.equal(body.status, "cancelled");
    assert.deepEqual(
      body.events.map(({ type, from, to }: { type: string; from?: string; to: string }) => [type, from, to]),
      [
        ["accepted", undefined, "scheduledFor" in request ? "pending" : "queued"],
        ["cancelled", "scheduledFor" in request ? "pending" : "queued", "cancelled"],
      ],
    );
  }
  assert.equal((await cancel("0197b6a0-0000-7000-8000-000000000000")).status, 404);
});

test("of many racing cancels one wins", async () => {
  const id = await send({});
  const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal((await service.db.query("select from carillon.events where notification_id = $1", [id])).rowCount, 1);
});

test("a leased notification is processing and cannot be cancelled", async () => {
  const id = await send({});
  await service.db.query(
    `with taken as (delete from carillon.ready where id = $1 returning *)
     insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done, seqs, priorities, tenants,
       ids, attempts, expiries)
     select 1, 1, now(), now() + interval '30 s', seq, seq, '0', array[seq], array[priority], array[tenant], array[id], '{1}',
       array[expires_at] from taken`,
    [id],
  );
  const { status, body } = await cancel(id);
  assert.deepEqual([status, body.reason], [409, "the notification is processing"]);
  assert.equal((await service.ask("GET", "/v1/queue")).body.processing, 1);
  assert.equal((await ledger()).balanced, true);
});

test("the queue's depth counts each lane and knows the oldest", async () => {
  const key = await service.makeKey({ tenant: "depth", scopes: ["send", "read"] });
  const ask = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key });
  const empty = (await ask("GET", "/v1/queue")).body;
  assert.deepEqual(empty, {
    engine: "postgres",
    engines: [],
    depth: { urgent: 0, high: 0, normal: 0, low: 0 },
    processing: 0,
    scheduled: 0,
    oldestAgeMs: 0,
    isEstimate: false,
    paused: [],
    untaken: [],
  });
  for (const priority of ["urgent", "low", "low", undefined])
    await ask("POST", "/v1/notifications", { ...email(), priority });
  await ask("POST", "/v1/notifications", { ...email(), scheduledFor: "2099-01-01T00:00:00Z" });
  await service.db.query(
    "update carillon.notifications set accepted_at = accepted_at - interval '1 minute' where priority = 0",
  );
  const { body } = await ask("GET", "/v1/queue");
  assert.deepEqual(body.depth, { urgent: 1, high: 0, normal: 1, low: 2 });
  assert.equal(body.scheduled, 1);
  assert.ok(body.oldestAgeMs >= 60_000 && body.oldestAgeMs < 120_000, String(body.oldestAgeMs));
});

test("the ledger balances at every moment, while senders and cancellers are at work", async () => {
  const before = await ledger();
  let isDone = false;
  const work = Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let n = 0; n < 25; n++) {
        const id = await send(n % 3 === 0 ? { scheduledFor: "2099-01-01T00:00:00Z" } : {});
        if (n % 2 === 0) await cancel(id);
      }
    }),
  ).then(() => {
    isDone = true;
  });
  let looks = 0;
  while (!isDone) {
    const { balanced, ...figures } = await ledger();
    assert.equal(balanced, true, JSON.stringify(figures));
    looks++;
  }
  await work;
  const after = await ledger();
  assert.ok(looks > 3);
  assert.equal(after.accepted - before.accepted, 200);
  assert.equal(after.cancelled - before.cancelled, 104);
  assert.equal(after.accepted, after.waiting + after.cancelled);
});

test("the ledger follows a notification through all that may happen to it", async () => {
  const id = await send({});
  const move = (type: string, from: string, to: string) =>
    service.db.query(
      "insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ($1, 1, $2, $3, $4)",
      [id, type, from, to],
    );
  const before = await ledger();
  await service.db.query("delete from carillon.ready where id = $1", [id]);
  await move("attempt", "processing", "failed");
  assert.deepEqual([(await ledger()).failed - before.failed, (await ledger()).balanced], [1, true]);
  await move("retried", "failed", "queued");
  await move("attempt", "processing", "sent");
  assert.deepEqual([(await ledger()).failed - before.failed, (await ledger()).sent - before.sent], [0, 1]);
  await move("delivered", "sent", "delivered");
  const after = await ledger();
  assert.deepEqual([after.sent - before.sent, after.delivered - before.delivered, after.balanced], [0, 1, true]);
});
