// What a message becomes before any provider sees it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message } from "#channels/channel.ts";
import { checkMailSettings, type Mail, type MailSettings, mailFaults, mailOf } from "#channels/email/mail.ts";
import { mimeOf } from "#channels/email/mime.ts";
import { plainTextOf } from "#channels/email/plain-text.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { pointer } from "#domain/schema.ts";

const settings: MailSettings = { from: "bells@carillon.example", fromName: "Carillon" };
const content = { subject: "Hello", textBody: "Good morning" };
const message = (more: Partial<NotificationRequest["content"]> = {}, recipient = {}): Message => ({
  notificationId: "0198c3f0-0000-7000-8000-000000000001",
  tenant: 1,
  attempt: 1,
  request: {
    channel: "email",
    recipient: { email: "ada@example.org", ...recipient },
    content: { ...content, ...more },
  },
});
function mailed(from: Message, more: Partial<MailSettings> = {}): Mail {
  const mail = mailOf(from, { ...settings, ...more });
  assert.ok(!("kind" in mail), JSON.stringify(mail));
  return mail;
}
const source = async (mail: Mail) => (await mimeOf(mail, Date.UTC(2027, 0, 1))).bytes.toString("utf8");
/** Folded header lines made whole. */
const headersOf = (mime: string) => (mime.split("\r\n\r\n")[0] ?? "").replace(/\r\n[ \t]/g, " ").split("\r\n");

test("a message becomes a mail from the configured sender", async () => {
  assert.deepEqual(mailed(message()), {
    from: { address: "bells@carillon.example", name: "Carillon" },
    to: "ada@example.org",
    cc: [],
    bcc: [],
    subject: "Hello",
    text: "Good morning",
    attachments: [],
    headers: {},
    messageId: "<0198c3f0-0000-7000-8000-000000000001@carillon.example>",
  });
});

test("a message may name its sender, copies, where to reply and headers of its own", async () => {
  const own = {
    from: "orders@carillon.example",
    replyTo: "help@bücher.example",
    cc: ["bob@example.org", "Ada@example.org", "BOB@example.org"],
    bcc: ["audit@example.org", "bob@example.org"],
    headers: { "X-Order": "17", "x-campaign": "mine" },
  };
  const mail = mailed(message(own), { headers: { "X-Campaign": "account", "X-Mailer": "bells" } });
  const { from, to, cc, bcc, replyTo, headers } = mail;
  assert.deepEqual(from, { address: "orders@carillon.example" }, "the account's name belongs to the account's address");
  assert.deepEqual([to, cc, bcc], ["ada@example.org", ["bob@example.org"], ["audit@example.org"]], "nobody twice");
  assert.equal(replyTo, "help@xn--bcher-kva.example");
  assert.deepEqual(headers, { "X-Mailer": "bells", "X-Order": "17", "x-campaign": "mine" });
  const { envelope, bytes } = await mimeOf(mail, 0);
  assert.deepEqual(envelope.to, ["ada@example.org", "bob@example.org", "audit@example.org"]);
  assert.match(bytes.toString(), /^Cc: bob@example.org$/im);
  assert.doesNotMatch(bytes.toString(), /audit/);
  assert.deepEqual(mailed(message({ fromName: "Shop" })).from, { address: "bells@carillon.example", name: "Shop" });
});

test("nobody sends in a name that the account does not allow", () => {
  const faults = (from: string, more: Partial<MailSettings> = {}) =>
    mailFaults(message({ from }).request, { ...settings, ...more }).map(({ path }) => path);
  assert.deepEqual(faults("any@CARILLON.example"), []);
  assert.deepEqual(faults("ceo@bank.example"), ["/content/from"]);
  assert.deepEqual(faults("any@sub.carillon.example"), ["/content/from"]);
  assert.deepEqual(faults("carillon.example@bank.example"), ["/content/from"]);
  const allowFrom = ["bank.example", "one@other.example"];
  assert.deepEqual(faults("ceo@bank.example", { allowFrom }), []);
  assert.deepEqual(faults("one@other.example", { allowFrom }), []);
  assert.deepEqual(faults("two@other.example", { allowFrom }), ["/content/from"]);
  const refused = mailOf(message({ from: "ceo@bank.example" }), settings);
  assert.equal("kind" in refused && refused.kind, "rejected");
});

test("every attempt has the same Message-ID, and every notification its own", () => {
  const first = mailed(message()).messageId;
  assert.equal(mailed({ ...message(), attempt: 7 }).messageId, first);
  assert.notEqual(mailed({ ...message(), notificationId: "other" }).messageId, first);
});

test("an international domain is written as DNS knows it", () => {
  assert.equal(mailed(message({}, { email: "jörg@bücher.example" })).to, "jörg@xn--bcher-kva.example");
  assert.equal(mailed(message(), { from: "post@bücher.example" }).messageId.split("@")[1], "xn--bcher-kva.example>");
});

for (const [name, bad] of [
  ["CR", "a\rb"],
  ["LF", "a\nBcc: eve@example.net"],
  ["CRLF", "a\r\nBcc: eve@example.net"],
  ["NUL", "a\0b"],
] as const) {
  const attachment = { filename: "a.txt", contentType: "text/plain", content: "YQ==" };
  const places: [path: string, message: Message][] = [
    ["/recipient/email", message({}, { email: `${bad}@example.org` })],
    ["/recipient/email", message({}, { email: `ada@example.org${bad}` })],
    ["/content/subject", message({ subject: bad })],
    ["/content/fromName", message({ fromName: bad })],
    ["/content/replyTo", message({ replyTo: `a@example.org${bad}` })],
    ["/content/cc/0", message({ cc: [`a@example.org${bad}`] })],
    ["/content/bcc/0", message({ bcc: [`a@example.org${bad}`] })],
    ["/content/headers/X-A", message({ headers: { "X-A": bad } })],
    [pointer("/content/headers", `X-${bad}`), message({ headers: { [`X-${bad}`]: "a" } })],
    ["/content/attachments/0/filename", message({ attachments: [{ ...attachment, filename: bad }] })],
    ["/content/attachments/0/contentType", message({ attachments: [{ ...attachment, contentType: `text/${bad}` }] })],
  ];
  test(`${name} is a fault wherever it could end a header, and stops the mail as well`, () => {
    for (const [path, from] of places) {
      assert.deepEqual(
        mailFaults(from.request, settings).map((fault) => fault.path),
        [path],
      );
      const refused = mailOf(from, settings);
      assert.equal("kind" in refused && refused.kind, "rejected", path);
    }
  });
  test(`${name} in the settings is told when the provider is made`, () => {
    for (const wrong of [
      { from: `${bad}@example.org` },
      { fromName: bad },
      { replyTo: `${bad}@example.org` },
      { headers: { "X-Team": bad } },
      { headers: { [bad]: "x" } },
      { unsubscribeUrl: `https://example.org/${bad}` },
    ]) {
      assert.throws(() => checkMailSettings("smtp", { ...settings, ...wrong }), /^Error: provider smtp: /);
    }
  });
}

test("settings that make no mail are refused, all faults together", () => {
  const wrong = {
    from: "nobody",
    replyTo: "a@b@c",
    headers: { Bcc: "eve@example.net" },
    unsubscribeUrl: "http://x.example",
  };
  assert.throws(() => checkMailSettings("ses", wrong), /from .*; replyTo .*; headers.Bcc .*; unsubscribeUrl /);
  assert.doesNotThrow(() => checkMailSettings("ses", { ...settings, headers: { "X-Team": "A" } }));
});

test("no text can add a header or a recipient", async () => {
  const hostile = fc.string({
    unit: fc.constantFrom("\r", "\n", "\0", "\u2028", "\u0085", "=", "?", "<", ">", '"', "é", "a", " ", ":", "B"),
    minLength: 1,
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(hostile, hostile, async (subject, filename) => {
      const attachments = [{ filename, contentType: "text/plain", content: "YQ==" }];
      const mail = mailOf(message({ subject: `s${subject}`, attachments }), settings);
      if ("kind" in mail) return;
      const { envelope, bytes } = await mimeOf(mail, 0);
      assert.deepEqual(envelope, { from: "bells@carillon.example", to: ["ada@example.org"] });
      const names = headersOf(bytes.toString("utf8")).map((line) => line.split(":")[0]);
      assert.deepEqual(names.sort(), ["Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"]);
    }),
    { numRuns: 300 },
  );
});

test("too many or too large attachments are a fault", () => {
  const attachment = { filename: "a.bin", contentType: "application/octet-stream", content: "AAAA" };
  const request = message({ attachments: [attachment, attachment] }).request;
  const faults = (more: Partial<MailSettings>) => mailFaults(request, { ...settings, ...more });
  assert.deepEqual(faults({ maxAttachments: 2, maxAttachmentBytes: 6 }), []);
  assert.deepEqual(faults({ maxAttachments: 1 }), [{ path: "/content/attachments", message: "must be at most 1" }]);
  assert.deepEqual(faults({ maxAttachmentBytes: 5 }), [
    { path: "/content/attachments", message: "must be at most 5 bytes together, not 6" },
  ]);
});

test("without an address, a subject or a body there is no mail", () => {
  const { recipient: _, ...nobody } = message().request;
  for (const request of [
    nobody,
    { ...nobody, recipient: { email: "not an address" } },
    { channel: "email" as const, recipient: { email: "a@example.org" }, content: { subject: "x" } },
    { channel: "email" as const, recipient: { email: "a@example.org" }, content: { textBody: "x" } },
  ]) {
    const refused = mailOf({ ...message(), request }, settings);
    assert.equal("kind" in refused && refused.kind, "rejected");
  }
});

test("one click unsubscribes: the headers of RFC 8058, with values that cannot leave their place", async () => {
  const unsubscribeUrl = "https://app.example/u?user={{userId}}&mail={{ email }}&n={{notificationId}}";
  const mail = mailed(message({}, { userId: "a b&c=<d>" }), { unsubscribeUrl });
  assert.deepEqual(mail.headers, {
    "List-Unsubscribe":
      "<https://app.example/u?user=a%20b%26c%3D%3Cd%3E&mail=ada%40example.org&n=0198c3f0-0000-7000-8000-000000000001>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
  });
  const lines = headersOf(await source(mail));
  assert.ok(lines.includes(`List-Unsubscribe: ${mail.headers["List-Unsubscribe"]}`), lines.join("\n"));
  assert.ok(lines.includes("List-Unsubscribe-Post: List-Unsubscribe=One-Click"));
  assert.deepEqual(mailed(message(), { unsubscribeUrl }).headers, {}, "no link for nobody");
  const endless = message({}, { userId: "ü".repeat(256) });
  assert.deepEqual(mailed(endless, { unsubscribeUrl }).headers, {}, "no link longer than a line");
});

test("a mail with HTML carries both forms, and attachments as they came", async () => {
  const attachments = [
    { filename: "größe.txt", contentType: "text/plain", content: Buffer.from("hé").toString("base64") },
  ];
  const mime = await source(
    mailed(message({ htmlBody: "<p>Hi <b>Ada</b></p>", attachments }), { replyTo: "help@carillon.example" }),
  );
  assert.match(mime, /^From: Carillon <bells@carillon.example>\r$/m);
  assert.match(mime, /^Reply-To: help@carillon.example\r$/m);
  assert.match(mime, /Content-Type: multipart\/mixed;[\s\S]*Content-Type: multipart\/alternative;/);
  assert.match(mime, /Content-Type: text\/plain; charset=utf-8\r\n[\s\S]*Good morning/);
  assert.match(mime, /Content-Type: text\/html; charset=utf-8\r\n[\s\S]*<p>Hi <b>Ada<\/b><\/p>/);
  assert.match(mime, /filename\*0\*=utf-8''gr%C3%B6%C3%9Fe\.txt/);
  assert.ok(mime.includes(Buffer.from("hé").toString("base64")));
});

test("HTML alone gets a text alternative", () => {
  const { textBody: _, ...htmlOnly } = content;
  const from = message();
  const mail = mailed({ ...from, request: { ...from.request, content: { ...htmlOnly, htmlBody: "<p>Hi</p>" } } });
  assert.deepEqual([mail.text, mail.html], ["Hi", "<p>Hi</p>"]);
});

const texts: [name: string, html: string, text: string][] = [
  ["paragraphs and breaks", "<p>One<br>two</p><p>three\n  four</p>", "One\ntwo\n\nthree four"],
  ["where links lead", '<a href="https://x.example/?a=1&amp;b=2">Pay</a> now', "Pay (https://x.example/?a=1&b=2) now"],
  ["an address shown once", '<a href="https://x.example">https://x.example</a>', "https://x.example"],
  ["a mail address shown once", "<a href='mailto:a@x.example'>a@x.example</a>", "a@x.example"],
  [
    "the alternative of a linked image",
    '<a href="https://x.example"><img src="i" alt="Logo"></a>',
    "Logo (https://x.example)",
  ],
  ["a link without words", '<a href="https://x.example"></a>', "https://x.example"],
  ["no scripts in links", '<a href="javascript:alert(1)">x</a>', "x"],
  ["blocks", "a<div>b</div><div><div>c</div></div>d", "a\nb\nc\nd"],
  ["lists", "<ul><li>a</li><li>b</li></ul>", "- a\n- b"],
  ["tables", "<table><tr><td>Sum</td><td>5&nbsp;€</td></tr><tr><td>x</td></tr></table>", "Sum 5 €\nx"],
  [
    "no styles, scripts, titles or comments",
    "<head><title>T</title><style>p{}</style></head><!-- c --><script>1<2</script>ok",
    "ok",
  ],
  ["no declarations", '<!doctype html><?xml version="1.0"?><html><body><p>ok</p></body></html>', "ok"],
  ["entities once", "&amp;lt; &#8364; &#x20AC; &copy; &unknown; &#0;&#xD800;", "&lt; € € © &unknown;"],
  ["a lone angle bracket", "1 < 2 and 3 > 2", "1 < 2 and 3 > 2"],
  ["unclosed tags", "<p>a<b>b<style>never shown", "ab"],
];
for (const [name, html, text] of texts) {
  test(`plain text keeps ${name}`, () => {
    assert.equal(plainTextOf(html), text);
  });
}

test("hostile HTML costs no more than its size", () => {
  const size = 262_144;
  for (const part of [
    "<a",
    "<a>",
    "<style",
    "<!--",
    "<!",
    "<?x",
    "<a href='",
    "&",
    "<",
    "\n ",
    '<a href="x',
    "<p",
    "</a>",
    "<img alt='",
  ]) {
    const html = part.repeat(size / part.length);
    const before = process.cpuUsage();
    plainTextOf(html);
    const tookMs = process.cpuUsage(before).user / 1000;
    // Of the processor's time, which a busy machine does not make longer. Quadratic time would be a minute.
    assert.ok(tookMs < 5_000, `${part}: ${tookMs} ms`);
  }
});
