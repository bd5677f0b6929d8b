// Nonsense in every form: never a 5xx, never a stored row.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { faultsOfRequest } from "#domain/validate.ts";
import { email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(async () => {
  assert.deepEqual(await stored(), 0, "nothing was stored by any of it");
  await service.stop();
});

const stored = async () => {
  const { rows } =
    await service.db.query(`select (select count(*) from carillon.notifications) + (select count(*) from carillon.ready)
    + (select count(*) from carillon.later) + (select count(*) from carillon.events) + (select count(*) from carillon.idempotency) as n`);
  return Number(rows[0].n);
};
const post = (raw: string | Buffer, path = "/v1/notifications") => service.ask("POST", path, undefined, { raw });

async function refusedWell(raw: string | Buffer, path?: string): Promise<void> {
  const { status, headers, body } = await post(raw, path);
  const isBatch = path?.endsWith("/batch") && status === 200;
  if (isBatch) return assert.equal(body.summary.succeeded, 0);
  assert.ok(status >= 400 && status < 500, `${status} for ${raw.toString().slice(0, 200)}`);
  assert.match(headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.match(body.code, /^[A-Z_]+$/);
}

test("any JSON that is not a valid request is refused", async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 6 }), async (value) => {
      fc.pre(faultsOfRequest(value, new Date()).length > 0);
      await refusedWell(JSON.stringify(value));
    }),
    { numRuns: 400 },
  );
});

test("any bytes that are not JSON are refused", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
      await refusedWell(Buffer.from(bytes));
    }),
    { numRuns: 200 },
  );
});

test("a good request with one odd value in a known field is refused or is good, never a failure of ours", async () => {
  const good = {
    ...email(),
    recipient: { email: "a@b.co", userId: "u", metadata: {} },
    metadata: { a: 1 },
    retryPolicy: {},
  };
  const odd = fc.oneof(
    fc.constantFrom<unknown>(
      "\u0000",
      "a\u0000b",
      "\ud800",
      "\udfff x",
      -0,
      1e308,
      -1e308,
      2 ** 53,
      [[[[]]]],
      { "\u0000": 1 },
      { "": "" },
    ),
    fc.string({ unit: "binary" }),
    fc.object({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value))),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(good)), odd, async (field, value) => {
      const request = { ...good, [field]: value };
      fc.pre(faultsOfRequest(request, new Date()).length > 0);
      await refusedWell(JSON.stringify(request));
    }),
    { numRuns: 300 },
  );
});

test("prototype pollution, deep nesting, huge and repeated fields are refused", async () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const request = (metadata: string) => `{"channel":"console","content":{},"metadata":${metadata}}`;
  for (const raw of [
    '{"__proto__":{"channel":"console"},"content":{}}',
    request('{"__proto__":{"admin":true}}'),
    request('{"a":{"__proto__":null}}'),
    '{"channel":"console","content":{"data":{"b":[{"__proto__":1}]}}}',
    '{"constructor":{"prototype":{"x":1}},"channel":"console","content":{}}',
    request(deep(33)),
    request(deep(20_000)),
    "[".repeat(100_000),
    deep(30_000),
    request(`{${Array.from({ length: 101 }, (_, n) => `"k${n}":1`).join()}}`),
    request('{"n":1e400}'),
    request('"\\ud800"'),
    request('{"x":"\\u0000"}'),
    '{"channel":"toString","content":{}}',
    '{"channel":"__proto__","content":{}}',
    "null",
    "0",
    '""',
    "[]",
  ]) {
    await refusedWell(raw);
    await refusedWell(`{"notifications":[${raw}]}`, "/v1/notifications/batch");
  }
  assert.equal(({} as { admin?: boolean }).admin, undefined);
});

test("odd query strings and paths are answered, never with a 5xx", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.webQueryParameters({ size: "small" }),
      fc.constantFrom("status", "limit", "cursor", "since", "userId", "metadata.x", ""),
      async (text, name) => {
        const { status } = await service.ask("GET", `/v1/notifications?${name}=${text}`);
        assert.ok(status === 200 || (status >= 400 && status < 500), `${status} for ${name}=${text}`);
      },
    ),
    { numRuns: 200 },
  );
  for (const path of [
    "/v1/notifications?since=2020-02-30T00:00:00Z",
    "/v1/notifications?userId=%00",
    "/v1/notifications?metadata.%00=1",
    "/v1/notifications?userId=%ED%A0%80",
    "/v1/keys/%00",
    `/v1/notifications/${"x".repeat(5000)}`,
  ]) {
    const { status } = await service.ask("GET", path);
    assert.ok(status < 500, `${status} for ${path.slice(0, 100)}`);
  }
});

test("what is not HTTP gets a 400 and the connection is closed", async () => {
  const { hostname, port } = new URL(service.url);
  for (const bytes of [
    "nonsense\r\n\r\n",
    "POST /v1/notifications HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nA: \u0000\r\n\r\n",
  ]) {
    const socket = connect(Number(port), hostname);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.write(bytes);
    await new Promise((resolve) => socket.on("close", resolve));
    assert.match(answer, /^HTTP\/1\.1 400 .*application\/problem\+json/s);
  }
});
