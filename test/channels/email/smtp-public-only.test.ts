// A tenant's mail server is a stranger's host: it never leads into our own network, and what stands there is not quoted.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { SMTPServer } from "smtp-server";
import type { Message } from "#channels/channel.ts";
import { type SmtpSettings, smtpProvider } from "#channels/email/smtp.ts";
import { ownFaults } from "#channels/settings.ts";
import type { Resolved } from "#wire/names.ts";
import { createPublicLookup } from "#wire/public-lookup.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../../support/certificate.ts";
import { startSmtpStandIn } from "../../support/smtp-stand-in.ts";

const message: Message = {
  notificationId: "ntf_1",
  tenant: 3,
  attempt: 1,
  request: { channel: "email", recipient: { email: "ada@example.org" }, content: { subject: "s", textBody: "t" } },
};
const options = () => ({ idempotencyKey: "k", timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) });
const answering =
  (...addresses: string[]) =>
  async (): Promise<Resolved[]> =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

type Options = Parameters<typeof createPublicLookup>[0];
function open(t: TestContext, settings: Partial<SmtpSettings>, lookup: Partial<Options> = {}) {
  const provider = smtpProvider(
    { host: "mail.example.test", tls: "none", from: "b@carillon.example", ...settings },
    { lookup: createPublicLookup({ allow: [], ...lookup }) },
  );
  t.after(() => provider.close?.());
  return {
    send: () => provider.send(message, options()),
    check: async () => (await provider.check?.(AbortSignal.timeout(10_000)))?.detail ?? "",
  };
}

const LOOPBACK = ["127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7f000001", "127.0.0.1", "::1", "::ffff:127.0.0.1"];

for (const host of [...LOOPBACK, "localhost"]) {
  test(`${host} as a mail server is refused, and nothing connects`, async (t) => {
    const server = await startSmtpStandIn();
    t.after(() => server.close());
    const { send, check } = open(t, { host, port: server.port });
    const reply = await send();
    assert.ok(reply.kind === "rejected" && reply.category === "credentials", JSON.stringify(reply));
    assert.match(reply.reason, /not allowed: loopback/);
    assert.match(await check(), /not allowed: loopback/);
    assert.equal(server.connections().ever, 0);
  });
}

test("a tenant cannot name an address as its mail server, in whatever notation", () => {
  const faultsOf = (host: string) =>
    ownFaults({ type: "smtp", host, from: "b@carillon.example" }).map(({ path }) => path);
  const literals = [
    "[::1]",
    "127.0.0.1.",
    "１２７.0.0.1",
    "10.1",
    "mail.example.com:25",
    "user@mail.example.com",
    "a/b.c",
  ];
  for (const host of [...LOOPBACK, ...literals, "localhost"]) assert.deepEqual(faultsOf(host), ["/host"], host);
  for (const host of ["mail.example.com", "Mail.Example.com", "mx-1.example.co.uk."])
    assert.deepEqual(faultsOf(host), []);
});

test("a name that leads inside is refused, also among public addresses", async (t) => {
  for (const addresses of [["10.0.0.7"], ["93.184.215.14", "169.254.169.254"], ["fd00::1"]]) {
    const reply = await open(t, {}, { resolve: answering(...addresses) }).send();
    assert.ok(reply.kind === "rejected" && !/\d\.\d/.test(reply.reason), JSON.stringify(reply));
  }
});

test("the connection goes to the address that was checked, whatever the name leads to a moment later", async (t) => {
  const server = await startSmtpStandIn();
  t.after(() => server.close());
  let asked = 0;
  const resolve = () => answering(++asked === 1 ? "127.0.0.1" : "127.0.0.2")();
  const { send } = open(t, { port: server.port }, { allow: ["127.0.0.1"], resolve });
  assert.equal((await send()).kind, "accepted");
  assert.deepEqual([asked, server.connections().ever], [1, 1]);
  await server.dropConnections();
  assert.equal((await send()).kind, "rejected");
});

for (const tls of ["implicit", "required"] as const) {
  test(`TLS (${tls}) asks for the name while the connection goes to the checked address`, async (t) => {
    const server = new SMTPServer({
      secure: tls === "implicit",
      key: PRIVATE_KEY,
      cert: CERTIFICATE,
      authOptional: true,
      onData: (stream, _session, done) => stream.on("end", done).resume(),
    });
    server.on("error", () => undefined);
    const listening = server.listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    const lookup = { allow: ["127.0.0.1"], resolve: answering("127.0.0.1") };
    const named = open(t, { host: "localhost", port, tls, ca: CERTIFICATE }, lookup);
    const misnamed = open(t, { port, tls, ca: CERTIFICATE }, lookup);
    // After the clients, for whom it waits.
    t.after(() => new Promise<void>((resolve) => server.close(() => resolve())));
    assert.equal((await named.send()).kind, "accepted");
    const other = await misnamed.send();
    assert.ok(other.kind === "unavailable", JSON.stringify(other));
    assert.doesNotMatch(other.reason, /localhost|altnames/, "a certificate's names are not repeated");
  });
}

const SECRET = "build-7731";
for (const [title, greeting] of [
  ["SSH", `SSH-2.0-${SECRET}\r\n`],
  ["HTTP", `HTTP/1.1 400 ${SECRET}\r\n\r\n`],
  ["a database", `\x4a\0\0\0\x0a8.0.${SECRET}\0\r\n`],
  ["numbers", `7731 ${SECRET}\r\n`],
  ["SMTP that refuses us", `554 5.7.1 ${SECRET}\r\n`],
  ["SMTP that refuses us in many lines", `554-5.7.1 ${SECRET}\r\n554 5.7.1 ${SECRET}\r\n`],
  ["SMTP that is full", `421 ${SECRET}\r\n`],
  ["SMTP that does not take our EHLO", `220 ${SECRET}\r\n502 ${SECRET}\r\n502 ${SECRET}\r\n`],
] as const) {
  test(`what greets like ${title} is not quoted`, async (t) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined).resume();
      socket.end(greeting);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const { send, check } = open(t, { port }, { allow: ["127.0.0.1"], resolve: answering("127.0.0.1") });
    const reply = await send();
    assert.ok(reply.kind === "unavailable", JSON.stringify(reply));
    assert.doesNotMatch(`${JSON.stringify(reply)} ${await check()}`, /7731/);
    if (greeting.startsWith("554")) assert.equal(reply.code, "554 5.7.1");
  });
}

test("a server that is not there is unavailable, and the reason names no address", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const reply = await open(t, { port }, { allow: ["127.0.0.1"], resolve: answering("127.0.0.1") }).send();
  assert.deepEqual(reply, {
    kind: "unavailable",
    reason: "the server cannot be reached (ECONNREFUSED)",
    category: "network",
  });
});
