// E-mail over SMTP, against a server that says what it is told and against a real one with TLS and logins.

import assert from "node:assert/strict";
import { createHash, verify } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { Message, Provider, SendOptions } from "#channels/channel.ts";
import { type SmtpSettings, smtpProvider } from "#channels/email/smtp.ts";
import { replyTo } from "#channels/email/smtp-replies.ts";
import type { Category, Reply } from "#domain/attempt.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../../support/certificate.ts";
import { type Step, startSmtpStandIn } from "../../support/smtp-stand-in.ts";

const message: Message = {
  notificationId: "0198c3f0-0000-7000-8000-000000000001",
  tenant: 1,
  attempt: 1,
  request: {
    channel: "email",
    recipient: { email: "ada@example.org" },
    content: { subject: "Hello", textBody: "Good morning" },
  },
};
const PASSWORD = "s3cret-pass";
const optionsOf = (signal = AbortSignal.timeout(20_000)): SendOptions => ({
  idempotencyKey: "key-1",
  timeoutMs: 20_000,
  signal,
});

async function opened(t: TestContext, more: Partial<SmtpSettings> = {}) {
  const server = await startSmtpStandIn();
  t.after(() => server.close());
  const settings: SmtpSettings = {
    host: "127.0.0.1",
    port: server.port,
    tls: "none",
    from: "b@carillon.example",
    ...more,
  };
  const provider = smtpProvider(settings);
  t.after(() => provider.close?.());
  const send = async (signal?: AbortSignal): Promise<Reply> => sound(await provider.send(message, optionsOf(signal)));
  return { server, provider, send };
}

function sound(reply: Reply): Reply {
  if (reply.kind !== "accepted") {
    assert.ok(reply.reason.length > 0 && reply.reason.length <= 1000);
    assert.ok(!reply.reason.includes(PASSWORD) && !/[\r\n]/.test(reply.reason), reply.reason);
  }
  return reply;
}

test("smtp: an accepted mail gives its Message-ID as receipt", async (t) => {
  const { server, send } = await opened(t);
  const receipt = `<${message.notificationId}@carillon.example>`;
  assert.deepEqual(await send(), { kind: "accepted", receipt });
  assert.match(server.mails[0] ?? "", new RegExp(`^Message-ID: ${receipt}\\r$`, "m"));
});

/** In the words of Postfix, Gmail, Amazon SES and SendGrid. */
const REPLIES: [Step, string, Reply["kind"], Category, code: string][] = [
  ["greeting", "421 4.3.2 Service not available, try again later", "unavailable", "outage", "421 4.3.2"],
  ["greeting", "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked", "unavailable", "outage", "554 5.7.1"],
  ["mail", "421 4.7.0 Try again later, closing connection.", "limited", "throttled", "421 4.7.0"],
  ["mail", "530 5.7.0 Must issue a STARTTLS command first", "rejected", "credentials", "530 5.7.0"],
  ["mail", "530-5.7.0 Authentication Required.\r\n530 5.7.0 see help", "rejected", "credentials", "530 5.7.0"],
  [
    "mail",
    "553 5.1.8 <b@carillon.example>: Sender address rejected: Domain not found",
    "rejected",
    "credentials",
    "553 5.1.8",
  ],
  ["mail", "452 4.3.1 Insufficient system storage", "unavailable", "outage", "452 4.3.1"],
  ["mail", "552 5.3.4 Message size exceeds fixed limit", "rejected", "content", "552 5.3.4"],
  [
    "rcpt",
    "550 5.1.1 <ada@example.org>: Recipient address rejected: User unknown",
    "dead-recipient",
    "recipient",
    "550 5.1.1",
  ],
  [
    "rcpt",
    "550-5.1.1 The email account that you tried to reach does not exist.\r\n550 5.1.1 gsmtp",
    "dead-recipient",
    "recipient",
    "550 5.1.1",
  ],
  ["rcpt", "550 No such user here", "dead-recipient", "recipient", "550"],
  ["rcpt", "551 User not local; please try <ada@example.net>", "dead-recipient", "recipient", "551"],
  [
    "rcpt",
    "553 5.1.3 The recipient address is not a valid RFC-5321 address.",
    "dead-recipient",
    "recipient",
    "553 5.1.3",
  ],
  [
    "rcpt",
    "550 5.2.1 The email account that you tried to reach is disabled.",
    "dead-recipient",
    "recipient",
    "550 5.2.1",
  ],
  ["rcpt", "552 5.2.2 The recipient's inbox is out of storage space", "rejected", "recipient", "552 5.2.2"],
  [
    "rcpt",
    "452 4.2.2 The email account that you tried to reach is over quota",
    "unavailable",
    "recipient",
    "452 4.2.2",
  ],
  [
    "rcpt",
    "450 4.2.1 The user you are trying to contact is receiving mail too quickly.",
    "limited",
    "throttled",
    "450 4.2.1",
  ],
  ["rcpt", "452 mailbox over quota, temporarily separated", "unavailable", "outage", "452"],
  ["rcpt", "450 4.2.0 <ada@example.org>: Recipient address rejected: Greylisted", "unavailable", "outage", "450 4.2.0"],
  ["rcpt", "451 4.7.1 Greylisting in action, please come back later", "limited", "throttled", "451 4.7.1"],
  [
    "rcpt",
    "451 4.4.4 Mail received as unauthenticated, host lookup did not complete",
    "unavailable",
    "network",
    "451 4.4.4",
  ],
  ["rcpt", "452 4.5.3 Error: too many recipients", "limited", "throttled", "452 4.5.3"],
  ["rcpt", "554 5.7.1 <ada@example.org>: Relay access denied", "rejected", "content", "554 5.7.1"],
  ["data", "451 4.3.0 Error: queue file write error", "unavailable", "outage", "451 4.3.0"],
  ["dot", "454 Throttling failure: Maximum sending rate exceeded.", "limited", "throttled", "454"],
  ["dot", "550 The from address does not match a verified Sender Identity.", "rejected", "content", "550"],
  [
    "dot",
    "550 5.7.1 Our system has detected that this message is likely unsolicited mail.",
    "rejected",
    "content",
    "550 5.7.1",
  ],
  [
    "dot",
    "552 5.7.0 This message was blocked because its content presents a potential security issue.",
    "rejected",
    "content",
    "552 5.7.0",
  ],
  ["dot", "554 Message rejected: Email address is not verified.", "rejected", "content", "554"],
  ["dot", "421 4.3.0 Temporary System Problem. Try again later", "unavailable", "outage", "421 4.3.0"],
  ["dot", "451 4.3.0 Mail server temporarily rejected message.", "unavailable", "outage", "451 4.3.0"],
];
const PIPELINING = "250-stand-in\r\n250-SIZE 35882577\r\n250 PIPELINING";

for (const [step, said, kind, category, code] of REPLIES) {
  // With pipelining the recipient and DATA are sent before the sender is answered.
  for (const ehlo of ["250 stand-in", PIPELINING]) {
    const how = ehlo === PIPELINING ? ", pipelined" : "";
    test(`smtp: to ${step}${how}, ${said.split("\r\n")[0]} is ${kind}`, async (t) => {
      const { server, send } = await opened(t);
      server.say("ehlo", ehlo);
      server.say(step, said);
      // As servers do when there is nobody to send to.
      if (how && (step === "mail" || step === "rcpt")) server.say("data", "554 5.5.1 Error: no valid recipients");
      const reply = await send();
      assert.equal(reply.kind, kind, JSON.stringify(reply));
      assert.ok(reply.kind !== "accepted");
      assert.deepEqual([reply.category, reply.code], [category, code]);
    });
  }
}

test("smtp: a server that takes the message although it refused the recipient has not sent it", async (t) => {
  const { server, send } = await opened(t);
  server.say("ehlo", PIPELINING);
  server.say("rcpt", "550 5.1.1 unknown");
  assert.equal((await send()).kind, "dead-recipient");
  assert.ok(!server.mails.some((mail) => mail.includes("Good morning")));
});

test("smtp: of a mail with copies the recipient decides", async (t) => {
  for (const [refused, kind] of [
    ["bob@example.org", "accepted"],
    ["ada@example.org", "dead-recipient"],
  ] as const) {
    for (const ehlo of ["250 stand-in", PIPELINING]) {
      const { server, provider } = await opened(t);
      server.say("ehlo", ehlo);
      server.say("rcpt", (command) => (command.includes(refused) ? "550 5.1.1 unknown" : "250 2.1.5 Ok"));
      const content = { ...message.request.content, cc: ["bob@example.org"] };
      const copied = { ...message, request: { ...message.request, content } };
      assert.equal((await provider.send(copied, optionsOf())).kind, kind);
    }
  }
});

test("smtp: every reply that refuses has a meaning", () => {
  for (let responseCode = 400; responseCode < 600; responseCode++) {
    for (const command of ["CONN", "EHLO", "AUTH PLAIN", "MAIL FROM", "RCPT TO", "DATA"]) {
      const reply = replyTo({ responseCode, response: `${responseCode} no`, command, message: "no" });
      assert.ok(reply, `${responseCode} to ${command}`);
      if (responseCode < 500) assert.ok(reply.kind === "unavailable" || reply.kind === "limited");
    }
  }
});

for (const how of ["reset", "end"] as const) {
  for (const step of ["greeting", "ehlo", "mail", "rcpt", "data"] as const) {
    test(`smtp: a connection lost (${how}) at ${step} is unavailable, as the dot never left`, async (t) => {
      for (const ehlo of ["250 stand-in", PIPELINING]) {
        const { server, send } = await opened(t);
        server.say("ehlo", ehlo);
        server.say(step, how);
        assert.equal((await send()).kind, "unavailable");
        assert.equal(server.mails.length, 0);
        assert.equal(server.connections().ever, 1, "it is not tried again on its own");
      }
    });
  }
  test(`smtp: a connection lost (${how}) after the dot is ambiguous`, async (t) => {
    const { server, send } = await opened(t);
    server.say("dot", how);
    assert.equal((await send()).kind, "ambiguous");
    assert.equal(server.mails.length, 1, "the server has it");
    assert.equal(server.connections().ever, 1, "it is not sent again on its own");
  });
  test(`smtp: the same on a connection that has carried mail before (${how})`, async (t) => {
    const { server, send } = await opened(t);
    assert.equal((await send()).kind, "accepted");
    server.say("dot", how);
    assert.equal((await send()).kind, "ambiguous");
    assert.equal(server.mails.length, 2);
  });
}

for (const step of ["greeting", "ehlo", "mail", "rcpt", "data", "dot"] as const) {
  const kind = step === "dot" ? "ambiguous" : "unavailable";
  test(`smtp: silence at ${step} is ${kind} once the signal aborts`, async (t) => {
    const { server, send } = await opened(t);
    server.say(step, "hang");
    const stop = new AbortController();
    const sending = send(stop.signal);
    await server.reached(step);
    stop.abort();
    const reply = await sending;
    assert.ok(reply.kind !== "accepted");
    assert.deepEqual([reply.kind, reply.category], [kind, "timeout"]);
    await server.forsaken();
  });
}

for (const how of ["stall", "reset"] as const) {
  test(`smtp: a server that goes away (${how}) in the middle of a large mail never got the dot`, async (t) => {
    const { server, provider } = await opened(t, { maxAttachmentBytes: 1e9 });
    // More than the socket buffers of both sides hold.
    const content = Buffer.alloc(32 * 1024 * 1024, "a").toString("base64");
    const attachments = [{ filename: "a.bin", contentType: "application/octet-stream", content }];
    const { request } = message;
    server.say("body", how);
    const stop = new AbortController();
    const sending = provider.send(
      { ...message, request: { ...request, content: { ...request.content, attachments } } },
      optionsOf(stop.signal),
    );
    await server.reached("body");
    if (how === "stall") stop.abort();
    assert.equal((await sending).kind, "unavailable");
    assert.equal(server.mails.length, 0);
  });
}

test("smtp: a refused connection and a host that does not resolve are unavailable", async (t) => {
  const { server, send } = await opened(t);
  await server.close();
  assert.equal((await send()).kind, "unavailable");
  const lost = await opened(t, { host: "nowhere.invalid" });
  assert.equal((await lost.send()).kind, "unavailable");
});

test("smtp: a server that does not greet in time is unavailable", async (t) => {
  const { server, send } = await opened(t, { connectTimeoutMs: 50 });
  server.say("greeting", "hang");
  const reply = await send();
  assert.equal(reply.kind, "unavailable");
  assert.equal(reply.kind === "unavailable" && reply.category, "timeout");
});

test("smtp: once the signal is aborted nothing is sent", async (t) => {
  const { server, send } = await opened(t);
  assert.equal((await send(AbortSignal.abort())).kind, "unavailable");
  assert.deepEqual(server.steps, []);
});

test("smtp: mails that follow each other share a connection, also after a refusal", async (t) => {
  const { server, send } = await opened(t);
  for (let n = 0; n < 10; n++) assert.equal((await send()).kind, "accepted");
  server.say("rcpt", "550 5.1.1 unknown");
  assert.equal((await send()).kind, "dead-recipient");
  await server.reached("rset");
  server.say("rcpt", "250 Ok");
  assert.equal((await send()).kind, "accepted");
  assert.equal(server.connections().ever, 1);
});

test("smtp: a connection that the server closed while idle costs no mail", async (t) => {
  const { server, send } = await opened(t);
  assert.equal((await send()).kind, "accepted");
  await server.dropConnections();
  assert.equal((await send()).kind, "accepted");
  // One that breaks only as the next mail begins.
  server.say("mail", "reset");
  const sending = send();
  await server.reached("mail", 3);
  server.say("mail", "250 Ok");
  assert.equal((await sending).kind, "accepted");
  assert.equal(server.mails.length, 3);
});

test("smtp: no more connections are opened than allowed, and those who wait are served", async (t) => {
  const { server, send } = await opened(t, { connections: 2 });
  server.say("dot", "hang");
  const stop = new AbortController();
  const stuck = [send(stop.signal), send(stop.signal)];
  await server.reached("dot", 2);
  const waiting = [send(), send(), send()];
  server.say("dot", "250 Ok");
  stop.abort();
  assert.deepEqual(
    (await Promise.all(stuck)).map(({ kind }) => kind),
    ["ambiguous", "ambiguous"],
  );
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ kind }) => kind),
    ["accepted", "accepted", "accepted"],
  );
  assert.ok(server.connections().ever <= 4, `${server.connections().ever}`);
});

test("smtp: when closed it holds no connection, and what is under way is settled", async (t) => {
  const { server, provider, send } = await opened(t);
  await send();
  server.say("dot", "hang");
  const sending = send();
  await server.reached("dot", 2);
  await provider.close?.();
  assert.equal((await sending).kind, "ambiguous");
  await server.forsaken();
  assert.equal((await send()).kind, "unavailable");
});

test("smtp: a mail larger than the server says it takes is not begun", async (t) => {
  const { server, send } = await opened(t);
  server.say("ehlo", "250-stand-in\r\n250 SIZE 100");
  const reply = await send();
  assert.equal(reply.kind, "rejected", JSON.stringify(reply));
  assert.equal(reply.kind === "rejected" && reply.category, "content");
  assert.ok(!server.steps.includes("mail"));
});

async function realServer(t: TestContext, options: SMTPServerOptions = {}) {
  const got: { user: string | undefined; isSecure: boolean; source: string }[] = [];
  const server = new SMTPServer({
    key: PRIVATE_KEY,
    cert: CERTIFICATE,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      username === "carillon" && password === PASSWORD
        ? done(null, { user: username })
        : done(new Error("Invalid login")),
    onData(stream, session, done) {
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("end", () => {
        got.push({ user: session.user, isSecure: session.secure, source: Buffer.concat(parts).toString("utf8") });
        done();
      });
    },
    ...options,
  });
  // A client that breaks off while TLS is agreed on is part of the tests.
  server.on("error", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const providers: Provider[] = [];
  t.after(async () => {
    // The server waits for its clients.
    for (const provider of providers) await provider.close?.();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const { port } = server.server.address() as AddressInfo;
  const open = (more: Partial<SmtpSettings> = {}): Provider => {
    const provider = smtpProvider({
      ...{ host: "127.0.0.1", port, from: "b@carillon.example", user: "carillon", password: PASSWORD, ca: CERTIFICATE },
      ...more,
    });
    providers.push(provider);
    return provider;
  };
  return { got, open };
}

test("smtp: with STARTTLS and a login the mail arrives encrypted and as the user", async (t) => {
  const { got, open } = await realServer(t);
  assert.equal((await open().send(message, optionsOf())).kind, "accepted");
  assert.deepEqual([got[0]?.user, got[0]?.isSecure], ["carillon", true]);
});

test("smtp: TLS from the first byte", async (t) => {
  const { got, open } = await realServer(t, { secure: true });
  assert.equal((await open({ tls: "implicit" }).send(message, optionsOf())).kind, "accepted");
  assert.equal(got[0]?.isSecure, true);
});

test("smtp: a wrong password is rejected as a matter of credentials, and the check says so", async (t) => {
  const { got, open } = await realServer(t);
  const provider = open({ password: "wrong" });
  const reply = sound(await provider.send(message, optionsOf()));
  assert.equal(reply.kind, "rejected", JSON.stringify(reply));
  assert.deepEqual(reply.kind === "rejected" && [reply.category, reply.code?.slice(0, 3)], ["credentials", "535"]);
  assert.equal((await provider.check?.(AbortSignal.timeout(20_000)))?.healthy, false);
  assert.equal((await open().check?.(AbortSignal.timeout(20_000)))?.healthy, true);
  assert.equal(got.length, 0);
});

test("smtp: without TLS, where it is required, neither the password nor the mail leaves", async (t) => {
  const { got, open } = await realServer(t, { disabledCommands: ["STARTTLS"], allowInsecureAuth: true });
  assert.equal((await open().send(message, optionsOf())).kind, "unavailable");
  assert.equal((await open({ tls: "opportunistic" }).send(message, optionsOf())).kind, "unavailable");
  assert.equal(got.length, 0);
  assert.equal(
    (await open({ tls: "none" }).send(message, optionsOf())).kind,
    "accepted",
    "unless the operator says so",
  );
});

test("smtp: a certificate nobody vouches for is not accepted", async (t) => {
  const { got, open } = await realServer(t);
  const reply = sound(await open({ ca: "" }).send(message, optionsOf()));
  assert.equal(reply.kind, "unavailable", JSON.stringify(reply));
  assert.match(reply.kind === "unavailable" ? reply.reason : "", /self-signed/);
  assert.equal(got.length, 0);
});

test("smtp: DKIM signs the mail, the unsubscribe headers included", async (t) => {
  const { got, open } = await realServer(t);
  const provider = open({
    dkim: { domain: "carillon.example", selector: "s1", privateKey: PRIVATE_KEY },
    unsubscribeUrl: "https://app.example/u/{{notificationId}}",
  });
  assert.equal((await provider.send(message, optionsOf())).kind, "accepted");
  const signed = dkimHeaders(got[0]?.source ?? "");
  for (const name of ["from", "to", "subject", "message-id"]) assert.ok(signed.includes(name), name);
  // RFC 8058 asks for these two.
  assert.ok(signed.includes("list-unsubscribe") && signed.includes("list-unsubscribe-post"), signed.join());
});

/** The headers that the signature covers, once it is found to hold: RFC 6376, relaxed/relaxed. */
function dkimHeaders(source: string): string[] {
  const at = source.indexOf("\r\n\r\n");
  const headers = source.slice(0, at).split(/\r\n(?![ \t])/);
  const relaxed = (header: string) => {
    const colon = header.indexOf(":");
    return `${header.slice(0, colon).toLowerCase()}:${header
      .slice(colon + 1)
      .replace(/\s+/g, " ")
      .trim()}`;
  };
  const named = (name: string) => headers.findLast((header) => header.toLowerCase().startsWith(`${name}:`)) ?? "";
  const own = named("dkim-signature");
  const tag = (name: string) => new RegExp(`[;:]\\s*${name}=([^;]*)`).exec(own)?.[1]?.replace(/\s+/g, "") ?? "";
  assert.deepEqual(
    [tag("a"), tag("c"), tag("d"), tag("s")],
    ["rsa-sha256", "relaxed/relaxed", "carillon.example", "s1"],
  );
  const lines = source
    .slice(at + 4)
    .split("\r\n")
    .map((line) => line.replace(/[ \t]+/g, " ").trimEnd());
  const body = `${lines.join("\r\n").replace(/(\r\n)+$/, "")}\r\n`;
  assert.equal(createHash("sha256").update(body).digest("base64"), tag("bh"));
  const names = tag("h").toLowerCase().split(":");
  const text = [...names.map(named), own.replace(/([;\s]b=)[\s\S]*$/, "$1")].map(relaxed).join("\r\n");
  assert.ok(verify("sha256", Buffer.from(text), CERTIFICATE, Buffer.from(tag("b"), "base64")), "the signature holds");
  return names;
}

test("smtp: settings that cannot work are told when the provider is made", () => {
  const settings: SmtpSettings = { host: "127.0.0.1", from: "b@carillon.example" };
  assert.throws(() => smtpProvider({ ...settings, from: "nobody" }), /from must be an e-mail address/);
  const dkim = { domain: "carillon.example", selector: "s1", privateKey: "no key" };
  assert.throws(() => smtpProvider({ ...settings, dkim }));
});
