// What went over the wire is in the record: of failures, of all or of none, without secrets and never much of it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { Exchanges } from "#domain/exchange.ts";
import { startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const KEY = "SG.planted-exchange-0123456789";

/** A provider that shows whoever asks what they sent, at length. Mail to `good@…` is taken. */
async function startEcho(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => {
      body += part;
    });
    request.on("end", () => {
      if (body.includes("good@example.com")) return response.writeHead(202).end("taken");
      const { authorization } = request.headers;
      response.writeHead(400, { "content-type": "text/html" });
      response.end(`no\u0000 such ${authorization} ${KEY} <pre>${body}</pre>${"x".repeat(500_000)}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serviceWith(t: TestContext, exchanges: Exchanges) {
  const apiUrl = await startEcho(t);
  const service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: { mail: { type: "sendgrid", from: "a@example.com", apiKey: KEY, apiUrl } } as never,
    routes: { email: "mail" } as never,
    exchanges,
  });
  t.after(() => service.stop());
  const sent = async (to: string) => {
    const { body } = await service.ask("POST", "/v1/notifications", {
      channel: "email",
      recipient: { email: `${to}@example.com`, userId: to },
      content: { subject: "Seen on the wire", textBody: "y".repeat(5_000) },
    });
    return until(async () => {
      const { body: record } = await service.ask("GET", `/v1/notifications/${body.notificationId}`);
      return ["sent", "failed"].includes(record.status) && record.attempts.length > 0 ? record : undefined;
    });
  };
  return { service, sent };
}

test("a failed attempt shows the beginning of what was sent and of the answer, without the account's key", async (t) => {
  const { service, sent } = await serviceWith(t, "failures");
  const record = await sent("bad");
  const { request, answer } = record.attempts[0].exchange;
  assert.equal(record.status, "failed");
  assert.equal(request.type, "application/json");
  assert.match(request.body, /bad@example\.com/);
  assert.equal(answer.status, 400);
  assert.match(answer.body, /^no such Bearer \*+ \*+ <pre>/);
  for (const { length } of [request.body, answer.body]) assert.ok(length <= 1_024);
  assert.ok(!JSON.stringify(record).includes("planted-exchange"));
  assert.ok(record.events.every(({ detail }: { detail?: object }) => !detail || !("exchange" in detail)));
  const { rows } = await service.db.query("select string_agg(e::text, '') as all from carillon.events e");
  assert.ok(!rows[0].all.includes("planted-exchange"), "nor does the database have it");

  // What happened is told once everything that was open before has ended.
  const facts = await until(async () => {
    const { body } = await service.ask("GET", "/v1/events?types=failed&limit=100");
    return body.data.length > 0 ? body : undefined;
  });
  assert.ok(!JSON.stringify(facts).includes("exchange"), "those who follow are not told");

  assert.equal((await sent("good")).attempts[0].exchange, undefined);

  // Whoever is forgotten is forgotten here, too.
  await service.ask("DELETE", "/v1/users/bad");
  await until(async () => {
    const { body } = await service.ask("GET", "/v1/users/bad/deletion");
    return body.state === "done" ? true : undefined;
  });
  const { body: blank } = await service.ask("GET", `/v1/notifications/${record.notificationId}`);
  assert.equal(blank.attempts[0].exchange, undefined);
});

test("of all attempts, or of none, where that is set", async (t) => {
  const all = await serviceWith(t, "all");
  assert.deepEqual((await all.sent("good")).attempts[0].exchange.answer, { status: 202, body: "taken" });
  const none = await serviceWith(t, "off");
  assert.equal((await none.sent("bad")).attempts[0].exchange, undefined);
});
