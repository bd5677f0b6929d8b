// For whoever runs it: health, metrics, documents, headers, logs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import { readConfig } from "#config/read.ts";
import { PROBLEMS } from "#domain/problems.ts";
import { start } from "#main.ts";
import { createLog } from "#telemetry/log.ts";
import { byHand } from "../support/by-hand.ts";
import { freshDatabase } from "../support/postgres.ts";
import { ADMIN_KEY, asking, email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

test("health names each part, readiness and liveness answer", async () => {
  const { status, body } = await service.ask("GET", "/health", undefined, { key: null });
  assert.equal(status, 200);
  assert.equal(body.status, "degraded", "nobody delivers here");
  assert.deepEqual(
    body.checks.map(({ name, healthy }: { name: string; healthy: boolean }) => [name, healthy]),
    [
      ["database", true],
      ["writes", true],
      ["queue", true],
      ["workers", true],
      ["callbacks", true],
      ["feed", true],
      ["clock", true],
    ],
  );
  assert.ok(body.uptime > 0);
  assert.deepEqual((await service.ask("GET", "/ready", undefined, { key: null })).body, { ready: true });
  assert.deepEqual((await service.ask("GET", "/live", undefined, { key: null })).body, { live: true });
});

test("metrics tell of requests, commits, the pools and the event loop", async () => {
  await Promise.all(Array.from({ length: 20 }, (_, n) => service.ask("POST", "/v1/notifications", email(n))));
  const { headers, body } = await service.ask("GET", "/metrics", undefined, { key: null });
  assert.match(headers.get("content-type") ?? "", /^text\/plain/);
  for (const line of [
    /carillon_http_request_duration_seconds_count\{method="POST",route="\/v1\/notifications",status="202"\} 20/,
    /carillon_accept_commit_duration_seconds_count [1-9]/,
    /carillon_accept_commit_rows_sum 20/,
    /carillon_accept_waiting 0/,
    /carillon_pool_connections\{pool="accept",state="idle"\} [12]/,
    /carillon_pool_connections\{pool="small",state="waiting"\} 0/,
    /nodejs_eventloop_lag_p99_seconds/,
  ]) {
    assert.match(body, line);
  }
});

test("a path that is not ours is one label in the metrics, not one each", async () => {
  for (const path of ["/a", "/b", "/v1/notifications/../x"]) await service.ask("GET", path);
  const { body } = await service.ask("GET", "/metrics");
  const routes = new Set(
    [...body.matchAll(/http_request_duration_seconds_count\{[^}]*route="([^"]*)"/g)].map(([, route]) => route),
  );
  assert.ok(routes.has("none") && !routes.has("/a"));
});

test("every answer carries the security headers and a request id", async () => {
  for (const [path, status] of [
    ["/docs", 200],
    ["/openapi.json", 200],
    ["/v1/queue", 401],
    ["/nowhere", 404],
    ["/%zz", 400],
    ["/", 302],
    ["/health", 200],
  ] as const) {
    const answer = await service.ask("GET", path, undefined, { key: null });
    assert.equal(answer.status, status, path);
    assert.match(
      answer.headers.get("content-security-policy") ?? "",
      /default-src 'none'.*frame-ancestors 'none'/,
      path,
    );
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(answer.headers.get("referrer-policy"), "no-referrer", path);
    assert.ok(answer.headers.get("x-request-id"), path);
  }
});

test("a caller's request id is kept if it can do no harm", async () => {
  const id = async (given: string) =>
    (await service.ask("GET", "/live", undefined, { headers: { "x-request-id": given } })).headers.get("x-request-id");
  assert.equal(await id("trace-17.a_b"), "trace-17.a_b");
  assert.notEqual(await id("{evil}"), "{evil}");
  assert.notEqual(await id("x".repeat(65)), "x".repeat(65));
});

test("a wrong method is 405 with the right ones, an unknown path 404, both as problems", async () => {
  const wrong = await service.ask("DELETE", "/v1/notifications");
  assert.deepEqual(
    [wrong.status, wrong.body.code, wrong.headers.get("allow")],
    [405, "METHOD_NOT_ALLOWED", "POST, GET"],
  );
  for (const [method, path, allowed] of [
    ["TRACE", "/v1/notifications", "POST, GET"],
    ["QUERY", "/v1/inbox/a%2Fb?limit=5", "GET"],
    ["PROPFIND", "/v1/notifications/x/cancel", "POST"],
    ["OPTIONS", "/v1/schedules/x", "PUT, GET, DELETE"],
    ["GET", "/v1/notifications/batch", "POST"],
    ["POST", "/v1/keys/x", "DELETE"],
    ["HEAD", "/v1/explain", "POST"],
    ["PUT", "/", "GET"],
  ] as const) {
    const { status, headers } = await byHand(service.url, method, path);
    assert.deepEqual([status, headers.allow], [405, allowed], `${method} ${path}`);
  }
  assert.equal((await byHand(service.url, "TRACE", "/v1/notification")).status, 404);
  const unknown = await service.ask("GET", "/v2/anything");
  assert.deepEqual([unknown.status, unknown.body.code], [404, "NOT_FOUND"]);
  for (const { headers } of [wrong, unknown])
    assert.match(headers.get("content-type") ?? "", /^application\/problem\+json/);
});

test("the OpenAPI document describes every route with the schemas that validate", async () => {
  const { body } = await service.ask("GET", "/openapi.json", undefined, { key: null });
  assert.equal(body.openapi, "3.1.0");
  const send = body.paths["/v1/notifications"].post;
  assert.deepEqual(send.requestBody.content["application/json"].schema, {
    $ref: "#/components/schemas/NotificationRequest",
  });
  const { properties, required } = body.components.schemas.NotificationRequest;
  assert.deepEqual(required, ["channel", "content"]);
  assert.deepEqual(properties.priority.enum, ["urgent", "high", "normal", "low"]);
  assert.deepEqual(Object.keys(send.responses), ["200", "202", "401", "403", "422", "default"]);
  const list = body.paths["/v1/notifications"].get.parameters.map(({ name }: { name: string }) => name);
  for (const name of ["status", "channel", "priority", "userId", "provider", "since", "until", "limit", "cursor"])
    assert.ok(list.includes(name), name);
  const ids = Object.values(body.paths as { [path: string]: { [method: string]: { operationId: string } } }).flatMap(
    (path) => Object.values(path).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
  for (const path of [
    "/v1/notifications/{id}",
    "/v1/notifications/batch",
    "/v1/queue",
    "/v1/ledger",
    "/v1/statistics",
    "/v1/keys",
    "/health",
    "/metrics",
  ]) {
    assert.ok(body.paths[path], path);
  }
});

test("the documentation page shows every route and problem and needs nothing from elsewhere", async () => {
  const { body: page } = await service.ask("GET", "/docs", undefined, { key: null });
  const { body: document } = await service.ask("GET", "/openapi.json", undefined, { key: null });
  for (const path of Object.keys(document.paths)) assert.ok(page.includes(path.replace(/\{(\w+)\}/g, ":$1")), path);
  for (const code of Object.keys(PROBLEMS)) assert.ok(page.includes(`id="${code}"`), code);
  assert.doesNotMatch(page, /(src|href)="(https?:)?\/\//);
  assert.deepEqual(page.match(/<script[^>]*>[^<]*/g), ['<script type="module" src="/docs.js">']);
  assert.equal((await service.ask("GET", "/docs.css", undefined, { key: null })).status, 200);
});

test("logs carry request ids and neither recipients nor contents nor keys", async () => {
  const database = await freshDatabase();
  const stream = new PassThrough();
  let text = "";
  stream.on("data", (chunk) => {
    text += chunk;
  });
  const config = await readConfig({
    env: { DATABASE_URL: database.url, PORT: "0", CARILLON_API_KEY: ADMIN_KEY },
    cwd: import.meta.dirname,
  });
  const log = createLog("trace", stream as unknown as NodeJS.WriteStream);
  const running = await start(config, log, () => {});
  const ask = asking(running.url);
  await ask(
    "POST",
    "/v1/notifications",
    { ...email(), recipient: { email: "secret.person@example.com" } },
    { headers: { "x-request-id": "find-me" } },
  );
  await ask("POST", "/v1/notifications", { ...email(), recipient: { email: "secret.person@" } });
  await ask("GET", "/v1/notifications?userId=secret-user");
  const unset = await ask(
    "PUT",
    "/v1/providers/webhook",
    { type: "webhook" },
    { headers: { "x-request-id": "unset" } },
  );
  assert.equal(unset.status, 501);
  log.info(
    {
      recipient: { email: "secret.person@example.com" },
      request: { recipient: { phone: "+33699999999" } },
      authorization: `Bearer ${ADMIN_KEY}`,
    },
    "logged whole by mistake",
  );
  log.error(
    { err: new Error(`connect postgres://user:hunter2@db/x failed for ck_0123456789ab_${"f".repeat(48)}`) },
    "an error",
  );
  await running.stop();
  await database.drop();
  assert.match(text, /"requestId":"find-me"/);
  assert.match(text, /logged whole by mistake/);
  for (const secret of [
    "secret.person",
    "secret-user",
    "+33699999999",
    ADMIN_KEY,
    "hunter2",
    "f".repeat(48),
    "Hello",
  ]) {
    assert.ok(!text.includes(secret), `${secret} is in the log`);
  }
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const ofUnset = lines.filter(({ requestId }) => requestId === "unset").map(({ level, err }) => [level, err]);
  assert.deepEqual(ofUnset, [["debug", undefined]], "what a deployment is not set up for is no failure of its");
});

test("a stop answers what came in while the process was too busy to read it", async () => {
  const stopping = await startService();
  const socket = connect(Number(new URL(stopping.url).port), "127.0.0.1").setEncoding("utf8");
  const asked = "GET /live HTTP/1.1\r\nhost: carillon\r\n\r\n";
  socket.write(asked);
  await once(socket, "data");

  const stopped = stopping.stop();
  socket.write(asked);
  const busyUntil = performance.now() + 2_000;
  while (performance.now() < busyUntil);
  const [answer] = await once(socket, "data");
  assert.match(answer, /^HTTP\/1.1 \d+ .*connection: close/is);
  await stopped;
});
