// The mailbox: what would have gone out, as it would have gone out, found, waited for, forgotten, and never more than so much of it.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { ROLES } from "#config/server.ts";
import type { Channel } from "#domain/notification.ts";
import { keepDevMessages, MOST_KEPT, MOST_KEPT_BYTES } from "#store/dev-messages.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const ALL_DEV = Object.fromEntries(
  ["email", "push", "sms", "slack", "webhook", "inbox", "console", "file"].map((channel) => [channel, "dev"]),
) as { [channel in Channel]: string };

let service: Service;
before(async () => {
  service = await startService({
    roles: ROLES,
    routes: ALL_DEV,
    providers: {
      dev: { type: "dev" },
      webhook: { type: "webhook", secret: SECRET },
      mail: { type: "sendgrid", apiKey: "SG.x", from: "bells@carillon.example", fromName: "The Bells" },
    },
  });
});
after(() => service.stop());

const client = () => createClient({ url: service.url, key: service.key });
async function keptOf(request: object, key = service.key) {
  const { status, body } = await service.ask("POST", "/v1/notifications", request, { key });
  assert.equal(status, 202, JSON.stringify(body));
  const found = await service.ask("GET", `/v1/dev/messages?notificationId=${body.notificationId}&wait=60s`, undefined, {
    key,
  });
  assert.equal(found.body.data.length, 1, JSON.stringify(found.body));
  const { id } = found.body.data[0];
  return (await service.ask("GET", `/v1/dev/messages/${id}`, undefined, { key })).body;
}

test("a mail is kept as its source, from whom the deployment's account says, and its parts can be had", async () => {
  const content = {
    subject: "Grüße",
    htmlBody: '<p>Hi <b>Ada</b></p><img src="https://elsewhere.example/p.png"><script>alert(1)</script>',
    headers: { "X-Game": "7" },
    attachments: [
      {
        filename: 'plan"; x=<svg>.html',
        contentType: "text/html",
        content: Buffer.from("<b>!</b>").toString("base64"),
      },
    ],
    bcc: ["Boss@Example.com"],
  };
  const { id, to, wire } = await keptOf({ channel: "email", recipient: { email: "Ada@example.com" }, content });
  assert.deepEqual(to, ["ada@example.com", "boss@example.com"]);
  assert.deepEqual([wire.as, wire.type, wire.attempt], ["smtp", "message/rfc822", 1]);
  assert.match(wire.body, /^From: The Bells <bells@carillon\.example>\r\nTo: Ada@example\.com\r\n/m);
  assert.match(wire.body, /^X-Game: 7\r$/m);
  assert.doesNotMatch(wire.body, /boss@/i);
  assert.deepEqual([wire.mail.subject, wire.mail.bcc], ["Grüße", ["Boss@example.com"]]);
  assert.match(wire.mail.text, /Hi Ada/);

  const saved = await service.ask("GET", `/v1/dev/messages/${id}/attachments/0`);
  assert.equal(saved.body, "<b>!</b>");
  assert.deepEqual(
    ["content-type", "x-content-type-options", "content-security-policy", "content-disposition"].map((name) =>
      saved.headers.get(name),
    ),
    [
      "application/octet-stream",
      "nosniff",
      "sandbox; default-src 'none'",
      "attachment; filename=\"plan___x__svg_.html\"; filename*=UTF-8''plan%22%3B%20x%3D%3Csvg%3E.html",
    ],
  );
  assert.equal((await service.ask("GET", `/v1/dev/messages/${id}/attachments/1`)).status, 404);
  const raw = await service.ask("GET", `/v1/dev/messages/${id}/source`);
  assert.equal(raw.body, wire.body);
  assert.match(raw.headers.get("content-disposition") ?? "", /^attachment; filename="\d+\.eml"/);
});

test("a text message says in how many segments and in which letters it would go", async () => {
  const sms = (body: string) => ({ channel: "sms", recipient: { phone: "+4917012345" }, content: { body } });
  const short = await keptOf(sms("Hello"));
  assert.deepEqual([short.wire.as, short.wire.sms], ["twilio", { encoding: "GSM-7", segments: 1, characters: 5 }]);
  assert.equal(short.wire.body, "To=%2B4917012345&Body=Hello&From=%2B15550100");
  const long = await keptOf(sms("🔔".repeat(40)));
  assert.deepEqual(long.wire.sms, { encoding: "UCS-2", segments: 2, characters: 40 });
});

test("a push is kept for each device, in the words of who would carry it", async () => {
  const subscription = { endpoint: "https://push.example/1", keys: { p256dh: "a", auth: "b" } };
  await service.ask("PUT", "/v1/users/ada/devices/apple", { platform: "ios" });
  await service.ask("PUT", "/v1/users/ada/devices/robot", { platform: "android" });
  await service.ask("PUT", "/v1/users/ada/devices/page", { platform: "web", subscription });
  const request = { channel: "push", recipient: { userId: "ada" }, content: { title: "Goal", body: "1:0" } };
  const { body } = await service.ask("POST", "/v1/notifications", request);
  const path = `/v1/dev/messages?notificationId=${body.notificationId}`;
  const { data } = await until(async () => {
    const page = await ask(service, path);
    return page.data.length === 3 ? page : undefined;
  });
  const whole = await Promise.all(data.map(({ id }: { id: string }) => client().dev.messages.get(id)));
  const by = Object.fromEntries(whole.map(({ wire }) => [wire?.as, wire]));
  assert.deepEqual(JSON.parse(by.apns?.body ?? "").aps.alert, { title: "Goal", body: "1:0" });
  assert.equal(by.apns?.headers?.["apns-push-type"], "alert");
  assert.equal(JSON.parse(by.fcm?.body ?? "").message.token, "robot");
  assert.deepEqual([by.webpush?.url, JSON.parse(by.webpush?.body ?? "").title], [subscription.endpoint, "Goal"]);
  assert.equal(by.webpush?.headers?.urgency, "normal");
});

test("a webhook is kept with its signature, Slack with its blocks, and the channels of the house as they would be written", async () => {
  const hook = await keptOf({
    channel: "webhook",
    recipient: { webhookUrl: "https://example.com/hook" },
    content: { body: "Hello" },
  });
  const { headers, body } = hook.wire;
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const signature = createHmac("sha256", Buffer.alloc(32, 7)).update(signed).digest("base64");
  assert.deepEqual([hook.wire.url, headers["webhook-signature"]], ["https://example.com/hook", `v1,${signature}`]);

  const blocks = [{ type: "section", text: { type: "mrkdwn", text: "*Hi*" } }];
  const slack = await keptOf({
    channel: "slack",
    recipient: { slackChannel: "C1" },
    content: { title: "T", body: "B", data: { blocks } },
  });
  assert.deepEqual(JSON.parse(slack.wire.body), { channel: "C1", text: "*T*\nB", blocks });

  const item = await keptOf({ channel: "inbox", recipient: { userId: "u" }, content: { title: "Hi" } });
  assert.equal(JSON.parse(item.wire.body).title, "Hi");
  const line = await keptOf({ channel: "console", content: { body: "Hi" } });
  assert.equal(line.wire.body, '[console, normal] "Hi"');
  const written = await keptOf({ channel: "file", content: { body: "Hi" } });
  assert.deepEqual(JSON.parse(written.wire.body).content, { body: "Hi" });
});

test("what the real provider would refuse by itself is refused here as well", async () => {
  const request = { channel: "email", recipient: { email: "ada@example.com" } };
  const content = { subject: "Hi", textBody: "Hi", from: "somebody@else.example" };
  const { body } = await service.ask("POST", "/v1/notifications", { ...request, content });
  const ended = await until(async () => {
    const found = await ask(service, `/v1/notifications/${body.notificationId}`);
    return found.status === "failed" ? found : undefined;
  });
  assert.match(ended.attempts[0].error, /not an address that this account may send from/);
});

const mail = (to: string, subject: string) => ({
  channel: "email" as const,
  recipient: { email: to },
  content: { subject, textBody: `${subject}, in words` },
});

test("who waits is answered as soon as a mail is there, with that one only; and with none when the time is over", async () => {
  const { dev, send } = client();
  const waiting = dev.messages.wait({ to: "grace@example.com", channel: "email", seconds: 60 });
  await send(mail("somebody@example.com", "not this one"));
  await send(mail("grace@example.com", "Welcome"));
  const [welcome, ...more] = await waiting;
  assert.deepEqual([welcome?.message.content.subject, more], ["Welcome", []]);

  // The same again finds what is there; after it, only what comes then.
  const after = welcome?.id ?? "";
  assert.equal((await dev.messages.wait({ to: "GRACE@example.com" })).length, 1);
  const next = dev.messages.wait({ to: "grace@example.com", after, seconds: 60 });
  await send(mail("grace@example.com", "Second"));
  assert.deepEqual(
    (await next).map(({ message }) => message.content.subject),
    ["Second"],
  );
  assert.deepEqual(await dev.messages.wait({ to: "nobody@example.com", seconds: 1 }), []);
  for (const wait of ["0s", "61s", "10", "1m"]) {
    assert.equal((await service.ask("GET", `/v1/dev/messages?wait=${wait}`)).status, 422, wait);
  }
});

test("so many of a tenant may wait at once; who hangs up leaves, and others may wait meanwhile", async () => {
  const hangUp = new AbortController();
  const key = await service.makeKey({ tenant: "crowd", scopes: ["read"] });
  const other = await service.makeKey({ tenant: "other", scopes: ["read", "send"] });
  const wait = (of: string, signal?: AbortSignal, seconds = 60) =>
    fetch(`${service.url}/v1/dev/messages?wait=${seconds}s`, {
      headers: { authorization: `Bearer ${of}` },
      ...(signal && { signal }),
    });
  const crowd = Array.from({ length: 21 }, () => wait(key, hangUp.signal));
  // All but one of them wait: the first that is answered is the one too many.
  const refused = await Promise.race(crowd);
  assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [429, "TOO_MANY_REQUESTS"]);
  assert.equal((await wait(other, undefined, 1)).status, 200);
  hangUp.abort();
  await Promise.allSettled(crowd);
  await until(async () => ((await wait(key, undefined, 1)).status === 200 ? true : undefined));
});

test("messages are found by words and by recipient, page after page, and each tenant sees its own", async () => {
  const key = await service.makeKey({ tenant: "finder", scopes: ["read", "send"] });
  const mine = createClient({ url: service.url, key });
  for (const n of [1, 2, 3]) await keptOf(mail("alan@example.com", `Invoice ${n}`), key);
  await keptOf(mail("alan@example.com", "100% off_er"), key);
  const subjects = async (filters: object) =>
    (await mine.dev.messages.list(filters)).data.map(({ message }) => message.content.subject);
  assert.deepEqual(await subjects({ search: "INVOICE 2" }), ["Invoice 2"]);
  assert.deepEqual(await subjects({ search: "0% off_" }), ["100% off_er"]);
  assert.deepEqual(await subjects({ search: "0%off" }), []);
  const first = await mine.dev.messages.list({ to: "alan@example.com", limit: 3 });
  const second = await mine.dev.messages.list({ limit: 3, cursor: first.nextCursor ?? "" });
  assert.deepEqual([first.data.length, second.data.length, second.nextCursor], [3, 1, null]);

  const [theirs] = (await client().dev.messages.list()).data;
  for (const path of ["", "/source", "/attachments/0"]) {
    assert.equal((await service.ask("GET", `/v1/dev/messages/${theirs?.id}${path}`, undefined, { key })).status, 404);
  }
  assert.equal((await service.ask("DELETE", `/v1/dev/messages/${theirs?.id}`, undefined, { key })).status, 404);
  await mine.dev.messages.delete(first.data[0]?.id ?? "");
  assert.deepEqual(await subjects({}), ["Invoice 3", "Invoice 2", "Invoice 1"]);
  await mine.dev.messages.clear();
  assert.deepEqual(await subjects({}), []);
  assert.equal((await client().dev.messages.get(theirs?.id ?? "")).id, theirs?.id, "others' are still there");
});

test("of a tenant the latest are kept, so many and so large together; another's stay", async () => {
  const tenantOf = async (name: string) => {
    await service.makeKey({ tenant: name, scopes: ["read"] });
    return (await service.db.query("select id from carillon.tenants where name = $1", [name])).rows[0].id as number;
  };
  const [many, large, quiet] = [await tenantOf("many"), await tenantOf("large"), await tenantOf("quiet")];
  const kept = (tenant: number, body: string) => ({
    ...{ tenant, notificationId: "0197b6a0-0000-7000-8000-000000000000", attempt: 1 },
    ...{ request: { channel: "sms" as const, content: { body: "Hi" } }, wire: { body } },
  });
  await keepDevMessages(service.db, [kept(quiet, "quiet")]);
  await keepDevMessages(
    service.db,
    Array.from({ length: MOST_KEPT + 5 }, () => kept(many, "one of many")),
  );
  const megabyte = "x".repeat(1_000_000);
  const fit = Math.floor(MOST_KEPT_BYTES / 1_000_200);
  for (let n = 0; n < fit + 3; n += 7) await keepDevMessages(service.db, Array(7).fill(kept(large, megabyte)));
  await keepDevMessages(service.db, [kept(large, "\0 \ud800 the last")]);
  const { rows } = await service.db.query(
    `select tenant, count(*)::integer as count, sum(bytes)::integer as bytes from carillon.dev_messages
     where tenant = any ($1) group by tenant`,
    [[many, large, quiet]],
  );
  const of = (tenant: number) => rows.find((row) => row.tenant === tenant);
  assert.equal(of(many).count, MOST_KEPT);
  assert.ok(of(large).bytes <= MOST_KEPT_BYTES && of(large).count >= fit - 1, JSON.stringify(of(large)));
  assert.equal(of(quiet).count, 1);
});

test("a page is no larger than a few megabytes, however large its messages are", async () => {
  const key = await service.makeKey({ tenant: "pages", scopes: ["read", "send"] });
  const { rows } = await service.db.query("select id from carillon.tenants where name = 'pages'");
  const request = { channel: "sms" as const, content: { body: "x".repeat(1_000_000) } };
  const kept = { tenant: rows[0].id, notificationId: "0197b6a0-0000-7000-8000-000000000000", attempt: 1, request };
  await keepDevMessages(service.db, Array(10).fill({ ...kept, wire: {} }));
  const seen: number[] = [];
  let cursor: string | null = "";
  do {
    const { body } = await service.ask("GET", `/v1/dev/messages?limit=200${cursor && `&cursor=${cursor}`}`, undefined, {
      key,
    });
    seen.push(body.data.length);
    cursor = body.nextCursor;
  } while (cursor);
  assert.deepEqual(seen, [5, 5]);
});
