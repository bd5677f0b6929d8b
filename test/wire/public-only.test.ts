// No URL that a tenant gives leads into our own network.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { Reply } from "#domain/attempt.ts";
import { addressRule } from "#wire/address.ts";
import type { HttpAnswer } from "#wire/http.ts";
import type { Resolved } from "#wire/names.ts";
import type { LookupOptions } from "#wire/public-lookup.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import { startStandIn } from "../support/stand-in.ts";

type Opened = { ask(url: string): Promise<HttpAnswer | Reply> };

function opened(t: TestContext, options: Partial<LookupOptions> = {}): Opened {
  const http = createPublicHttp({ allow: [], ...options });
  t.after(() => http.close());
  return { ask: (url) => http.ask({ url, body: "{}", signal: AbortSignal.timeout(10_000) }) };
}
async function victim(t: TestContext) {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  standIn.answer({ status: 200, body: "the keys to everything" });
  return { standIn, port: new URL(standIn.url).port };
}
const answering =
  (...addresses: string[]) =>
  async (): Promise<Resolved[]> =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
function assertRefused(reply: HttpAnswer | Reply, rule: RegExp): void {
  assert.ok("kind" in reply && reply.kind === "rejected", JSON.stringify(reply));
  assert.equal(reply.category, "recipient");
  assert.match(reply.reason, rule);
}
const assertReached = (reply: HttpAnswer | Reply) =>
  assert.ok("status" in reply && reply.status === 200, JSON.stringify(reply));

const LOOPBACK = [
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "2130706433",
  "0x7f000001",
  "0x7f.0.0.1",
  "0x7f.1",
  "0X7F.0x0.0x0.0x1",
  "0177.0.0.1",
  "017700000001",
  "0177.0x0.0.01",
  "127.0.0.1.",
  "%31%32%37.0.0.1",
  "１２７.0.0.1",
  "127。0。0。1",
];

for (const host of LOOPBACK) {
  test(`${host} is refused as loopback, and reached where it is allowed`, async (t) => {
    const { standIn, port } = await victim(t);
    assertRefused(await opened(t).ask(`http://${host}:${port}/`), /loopback/);
    assert.equal(standIn.connections().ever, 0);
    assertReached(await opened(t, { allow: ["127.0.0.1"] }).ask(`http://${host}:${port}/`));
  });
}

/** [as a literal in a URL, the rule] */
const LITERALS: [literal: string, rule: RegExp][] = [
  ["169.254.169.254", /metadata/],
  ["2852039166", /metadata/],
  ["0xa9fea9fe", /metadata/],
  ["0251.0376.0251.0376", /metadata/],
  ["169.254.43518", /metadata/],
  ["100.100.100.200", /metadata/],
  ["168.63.129.16", /metadata/],
  ["169.254.0.1", /link-local/],
  ["0.0.0.0", /unspecified/],
  ["0", /unspecified/],
  ["0.1.2.3", /unspecified/],
  ["10.0.0.1", /private/],
  ["10.255.255.255", /private/],
  ["172.16.0.1", /private/],
  ["172.31.255.255", /private/],
  ["192.168.1.1", /private/],
  ["100.64.0.1", /carrier-grade NAT/],
  ["100.127.255.255", /carrier-grade NAT/],
  ["224.0.0.1", /multicast/],
  ["239.255.255.255", /multicast/],
  ["240.0.0.1", /reserved/],
  ["255.255.255.255", /reserved/],
  ["192.0.2.1", /documentation/],
  ["198.18.0.1", /benchmarking/],
  ["[::]", /unspecified/],
  ["[::1]", /loopback/],
  ["[0:0:0:0:0:0:0:1]", /loopback/],
  ["[::ffff:127.0.0.1]", /loopback/],
  ["[::ffff:7f00:1]", /loopback/],
  ["[::ffff:a9fe:a9fe]", /metadata/],
  ["[::127.0.0.1]", /loopback/],
  ["[::ffff:0:127.0.0.1]", /loopback/],
  ["[64:ff9b::169.254.169.254]", /metadata/],
  ["[64:ff9b::a00:1]", /private/],
  ["[64:ff9b:1::8.8.8.8]", /private/],
  ["[2002:7f00:1::]", /loopback/],
  ["[2002:a9fe:a9fe::1]", /metadata/],
  ["[2002:c0a8:101:1::1]", /private/],
  ["[2001:0:4136:e378:8000:63bf:3fff:fdd2]", /Teredo/],
  ["[2001:0:808:808::f7f7:f7f7]", /Teredo/],
  ["[fc00::1]", /private/],
  ["[fd00:ec2::254]", /metadata/],
  ["[fdff:ffff::1]", /private/],
  ["[fe80::1]", /link-local/],
  ["[febf::1]", /link-local/],
  ["[fec0::1]", /private/],
  ["[ff02::1]", /multicast/],
  ["[2001:db8::1]", /documentation/],
  ["[4000::1]", /reserved/],
  ["[1::1]", /reserved/],
];

for (const [literal, rule] of LITERALS) {
  test(`the literal ${literal} is refused: ${rule.source}`, async (t) => {
    assertRefused(await opened(t).ask(`http://${literal}/latest/meta-data/`), rule);
    assertRefused(await opened(t).ask(`https://${literal}:8443/`), rule);
  });
}

for (const [literal, rule] of LITERALS.filter(([literal]) => /^(\[[^\]]*\]|\d+\.\d+\.\d+\.\d+)$/.test(literal))) {
  const address = literal.replace(/[[\]]/g, "");
  if (address.startsWith("0251")) continue;
  test(`a name that leads to ${address} is refused, also among public addresses`, async (t) => {
    const url = "http://hooks.example.test/";
    assertRefused(await opened(t, { resolve: answering(address) }).ask(url), rule);
    assertRefused(await opened(t, { resolve: answering("93.184.215.14", address) }).ask(url), rule);
    assertRefused(await opened(t, { resolve: answering(address, "2606:2800::1") }).ask(url), rule);
  });
}

test("public addresses are let through, also inside NAT64, 6to4 and mapped ones", () => {
  const { refusalOf } = addressRule([]);
  for (const address of [
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
  ])
    assert.equal(refusalOf(address), undefined, address);
});

test("what is no address is refused", () => {
  const { refusalOf } = addressRule([]);
  for (const text of ["", "localhost", "127.1", "1.2.3.4.5", "::1::", "12345::"]) assert.ok(refusalOf(text), text);
  assert.equal(refusalOf("fe80::1%eth0"), "link-local");
});

test("localhost is refused by what it leads to", async (t) => {
  const { standIn, port } = await victim(t);
  const { ask } = opened(t);
  const replies = await Promise.all(Array.from({ length: 50 }, () => ask(`http://LocalHost:${port}/`)));
  for (const reply of replies) assertRefused(reply, /loopback/);
  assert.equal(standIn.connections().ever, 0);
});

for (const [title, url, rule] of [
  ["ftp", "ftp://example.com/", /http/],
  ["file", "file:///etc/passwd", /http/],
  ["gopher", "gopher://127.0.0.1:70/", /http/],
  ["data", "data:text/plain,hello", /http/],
  ["a user", "http://admin@example.com/", /credentials/],
  ["a password", "https://:sesame@example.com/", /credentials/],
  ["a host disguised as a user", "http://example.com@127.0.0.1/", /credentials/],
  ["a zone", "http://[fe80::1%25eth0]/", /cannot be read/],
  ["a number too large", "http://256.256.256.256/", /cannot be read/],
  ["no host", "http://", /cannot be read/],
  ["no URL", "example", /cannot be read/],
] as const) {
  test(`a URL with ${title} is refused, and the reason does not repeat it`, async (t) => {
    const reply = await opened(t).ask(url);
    assertRefused(reply, rule);
    assert.ok(!JSON.stringify(reply).includes("sesame"));
  });
}

test("an answer that changes after the check changes nothing", async (t) => {
  const good = await victim(t);
  const bad = await startStandIn({ host: "127.0.0.2", port: Number(good.port) });
  t.after(() => bad.close());
  let asked = 0;
  const resolve = () => answering(++asked % 2 === 1 ? "127.0.0.1" : "127.0.0.2")();
  const { ask } = opened(t, { allow: ["127.0.0.1"], resolve });
  const url = `http://rebind.example.test:${good.port}/`;
  assertReached(await ask(url));
  assert.equal(asked, 1, "there is no second answer to fall for");
  await good.standIn.dropConnections();
  assertRefused(await ask(url), /loopback/);
  assertReached(await ask(url));
  assert.equal(bad.connections().ever, 0);
  assert.equal(good.standIn.received.length, 2);
});

test("redirects are failures, wherever they lead", async (t) => {
  const { standIn } = await victim(t);
  const { ask } = opened(t, { allow: ["127.0.0.1"] });
  for (const location of ["http://169.254.169.254/latest/meta-data/", `${standIn.url}/inside`, "/inside"]) {
    for (const status of [300, 301, 302, 303, 307, 308]) {
      standIn.answer({ status, headers: { location } });
      assertRefused(await ask(`${standIn.url}/hook`), /redirect/);
    }
  }
  assert.ok(standIn.received.every(({ path }) => path === "/hook"));
});

for (const [title, entry] of [
  ["a host name", "Inside.Example.test"],
  ["an address", "127.0.0.1"],
  ["a CIDR", "127.0.0.0/8"],
] as const) {
  test(`${title} on the allow list lets through what it names, and keeps the name`, async (t) => {
    const { standIn, port } = await victim(t);
    const { ask } = opened(t, { allow: [entry], resolve: answering("127.0.0.1") });
    assertReached(await ask(`http://inside.example.test:${port}/x?y=1`));
    assert.equal(standIn.received[0]?.headers.host, `inside.example.test:${port}`);
    assert.equal(standIn.received[0]?.path, "/x?y=1");
  });
}

test("the allow list lets through nothing that it does not name", async (t) => {
  const { standIn, port } = await victim(t);
  const allow = ["inside.example.test", "10.0.0.0/8", "127.0.0.2", "::/128"];
  const { ask } = opened(t, { allow, resolve: answering("127.0.0.1") });
  for (const host of ["example.test", "x.inside.example.test", "inside.example.test.evil.test", "127.0.0.1"])
    assertRefused(await ask(`http://${host}:${port}/`), /loopback/);
  assert.equal(standIn.connections().ever, 0);
});

test("an allow list that cannot be read is an error when it is made", () => {
  for (const entry of [
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0/8",
    "::/129",
    "1.2.3.4/8/8",
    "a b",
    "http://x",
    "x:8080",
    "",
  ])
    assert.throws(() => addressRule([entry]), /is not/, entry);
});

test("TLS asks for the name while the connection goes to the checked address", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const hello = new Promise<Buffer>((resolve) => {
    server.once("connection", (socket) => {
      socket
        .on("error", () => undefined)
        .once("data", (data) => {
          resolve(data);
          socket.destroy();
        });
    });
  });
  const { ask } = opened(t, { allow: ["127.0.0.1"], resolve: answering("127.0.0.1") });
  const reply = await ask(`https://secure.example.test:${(server.address() as AddressInfo).port}/`);
  assert.ok((await hello).includes("secure.example.test"));
  assert.ok("kind" in reply && reply.kind === "unavailable", "it never left");
});

test("a name that does not resolve, or to nothing, is unavailable", async (t) => {
  const failing = async () => Promise.reject(new Error("getaddrinfo ENOTFOUND"));
  for (const resolve of [answering(), failing]) {
    const reply = await opened(t, { resolve }).ask("http://gone.example.test/");
    assert.ok("kind" in reply && reply.kind === "unavailable", JSON.stringify(reply));
  }
});

test("a receiver has no more connections than requests at a time", async (t) => {
  const { standIn } = await victim(t);
  const { ask } = opened(t, { allow: ["127.0.0.1"] });
  const line = async () => {
    for (let n = 0; n < 25; n++) assertReached(await ask(standIn.url));
  };
  await Promise.all(Array.from({ length: 8 }, line));
  assert.equal(standIn.connections().ever, 8);
});

test("proxy variables mean nothing", async (t) => {
  const { standIn: target } = await victim(t);
  const { standIn: proxy } = await victim(t);
  const source = join(import.meta.dirname, "../../src/wire/public-only.ts");
  const script = `
    import { createPublicHttp } from ${JSON.stringify(source)};
    const http = createPublicHttp({ allow: ["127.0.0.1"] });
    const answer = await http.ask({ url: ${JSON.stringify(target.url)}, body: "{}", signal: AbortSignal.timeout(10_000) });
    process.stdout.write(String(answer.status));
    await http.close();`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
  const variables = Object.fromEntries(names.map((name) => [name, proxy.url]));
  const env = { ...process.env, ...variables, NODE_USE_ENV_PROXY: "1", NO_PROXY: "", no_proxy: "" };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
  assert.equal(stdout, "200");
  assert.deepEqual([target.received.length, proxy.connections().ever], [1, 0]);
});
