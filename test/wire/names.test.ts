// A name that a tenant gives costs nobody else anything, however slowly it resolves.

import assert from "node:assert/strict";
import { pbkdf2 } from "node:crypto";
import dns from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { MOST_MS, type Resolved } from "#wire/names.ts";
import { createPublicLookup, type LookupOptions } from "#wire/public-lookup.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import { startNameServer, type Zone } from "../support/name-server.ts";
import { startStandIn } from "../support/stand-in.ts";

async function nameServer(t: TestContext, zone: Zone) {
  const server = await startNameServer(zone);
  t.after(() => server.close());
  return server;
}
async function receiver(t: TestContext) {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  return { standIn, port: new URL(standIn.url).port };
}
function client(t: TestContext, options: LookupOptions) {
  const http = createPublicHttp(options);
  t.after(() => http.close());
  return (url: string) => http.ask({ url, body: "{}", signal: AbortSignal.timeout(20_000) });
}
function look(options: LookupOptions, name: string, signal = AbortSignal.timeout(20_000)): Promise<Resolved[]> {
  const lookup = createPublicLookup(options).lookupUntil(signal);
  return new Promise((resolve, reject) =>
    lookup(name, { all: true }, (error, found) => (error ? reject(error) : resolve(found as Resolved[]))),
  );
}
/** The system's resolver, as told; it answers with what was asked of it. */
function systemResolver(t: TestContext, answer: () => Promise<Resolved[]>): string[] {
  const asked: string[] = [];
  t.mock.method(dns, "lookup", (name: string) => {
    asked.push(name);
    return answer();
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return asked;
}

test("names whose server is silent hold up nobody's look-ups, files or hashes", async (t) => {
  const { standIn, port } = await receiver(t);
  const slow = Array.from({ length: 24 }, (_, n) => `slow-${n}.example.test`);
  const zone: Zone = Object.fromEntries(slow.map((name) => [name, "silence"]));
  const names = await nameServer(t, { ...zone, "quick.example.test": ["127.0.0.1"] });
  const options = { allow: ["127.0.0.1"], nameServers: [names.address] };
  const hostile = createPublicHttp(options);
  const signal = AbortSignal.timeout(20_000);
  const held = slow.map((name) => hostile.ask({ url: `http://${name}/`, body: "{}", signal }));
  for (const name of slow) await names.wasAsked(name);

  const answer = await client(t, options)(`http://quick.example.test:${port}/`);
  assert.ok("status" in answer, JSON.stringify(answer));
  assert.equal(standIn.received.length, 1);
  await dns.lookup("localhost");
  await promisify(pbkdf2)("secret", "salt", 1, 32, "sha256");
  await readFile(import.meta.filename);

  await hostile.close();
  for (const reply of await Promise.all(held)) assert.ok("kind" in reply && reply.kind === "unavailable");
});

test("a name whose server is silent does not resolve, after a while", async (t) => {
  const names = await nameServer(t, { "slow.example.test": "silence" });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = look({ allow: [], nameServers: [names.address] }, "slow.example.test");
  const failed = assert.rejects(asked, (error: Error & { code?: string }) => {
    assert.deepEqual([error.message, error.code], ["the host's name does not resolve", "ETIMEOUT"]);
    return (error.cause as { code?: string }).code === "ECANCELLED";
  });
  await names.wasAsked("slow.example.test");
  t.mock.timers.tick(MOST_MS);
  await failed;
});

test("a look-up ends with its signal", async (t) => {
  const names = await nameServer(t, { "slow.example.test": "silence" });
  const ending = new AbortController();
  const asked = look({ allow: [], nameServers: [names.address] }, "slow.example.test", ending.signal);
  const failed = assert.rejects(asked, /no longer wanted/);
  await names.wasAsked("slow.example.test");
  ending.abort(new Error("no longer wanted"));
  await failed;
});

test("both kinds of addresses are found, and every one of them is checked", async (t) => {
  const inside = "0:0:0:0:0:0:0:1";
  const names = await nameServer(t, {
    "both.example.test": ["93.184.215.14", "2606:2800:0:0:0:0:0:1"],
    "four.example.test": ["93.184.215.14"],
    "six.example.test": ["2606:2800:0:0:0:0:0:1"],
    "inside.example.test": ["93.184.215.14", inside],
    "none.example.test": [],
    "xn--bcher-kva.example.test": ["93.184.215.14"],
  });
  const options = { allow: [], nameServers: [names.address] };
  const four = { address: "93.184.215.14", family: 4 };
  const six = { address: "2606:2800::1", family: 6 };
  assert.deepEqual(await look(options, "both.example.test"), [four, six]);
  assert.deepEqual(await look(options, "Four.Example.test."), [four]);
  assert.deepEqual(await look(options, "six.example.test"), [six]);
  assert.deepEqual(await look(options, "bücher.example.test"), [four]);
  await assert.rejects(look(options, "inside.example.test"), { code: "ADDRESS_REFUSED", message: /loopback/ });
  await assert.rejects(look(options, "none.example.test"), { code: "ENODATA" });
  const reply = await client(t, options)("http://unknown.example.test/");
  assert.deepEqual(reply, {
    kind: "unavailable",
    reason: "the host's name does not resolve (ENOTFOUND)",
    category: "network",
  });
});

test("of a name with very many addresses the first are enough", async (t) => {
  const many = Array.from({ length: 25 }, (_, n) => `93.184.215.${n}`);
  const names = await nameServer(t, { "many.example.test": [...many, "2606:2800:0:0:0:0:0:1"] });
  const found = await look({ allow: [], nameServers: [names.address] }, "many.example.test");
  assert.deepEqual(
    found.map(({ address }) => address),
    [...many.slice(0, 16), "2606:2800::1"],
  );
});

test("only names that the operator has allowed, and names without a dot, are the system's to resolve", async (t) => {
  const asked = systemResolver(t, async () => [{ address: "127.0.0.1", family: 4 }]);
  const names = await nameServer(t, { "hooks.example.test": ["93.184.215.14"] });
  const options = { allow: ["hooks.internal.test"], nameServers: [names.address] };
  assert.deepEqual(await look(options, "Hooks.Internal.test."), [{ address: "127.0.0.1", family: 4 }]);
  await assert.rejects(look(options, "localhost"), /loopback/);
  await look(options, "hooks.example.test");
  await assert.rejects(look(options, "other.internal.test"), { code: "ENOTFOUND" });
  assert.deepEqual(asked, ["hooks.internal.test", "localhost"]);
  assert.deepEqual([...new Set(names.asked)], ["hooks.example.test", "other.internal.test"]);
});

test("names without a dot take one thread at most, and those whom the operator has allowed do not wait for them", async (t) => {
  const answers: (() => void)[] = [];
  const found = [{ address: "127.0.0.1", family: 4 }];
  const asked = systemResolver(t, () => new Promise((resolve) => answers.push(() => resolve(found))));
  const options = { allow: ["hooks"] };
  const strangers = ["one", "two", "three"].map((name) => assert.rejects(look(options, name), /loopback/));
  const ours = look(options, "hooks");
  while (asked.length < 2) await new Promise(setImmediate);
  assert.deepEqual(asked.toSorted(), ["hooks", "one"]);
  for (let n = 0; n < 4; n++) {
    while (answers.length === 0) await new Promise(setImmediate);
    answers.shift()?.();
  }
  await Promise.all([ours, ...strangers]);
});
