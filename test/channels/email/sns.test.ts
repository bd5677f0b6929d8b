// Reports of Amazon SES over SNS: whom to believe, and what they say.

import assert from "node:assert/strict";
import { sign } from "node:crypto";
import { test } from "node:test";
import type { Report } from "#channels/channel.ts";
import { sesProvider } from "#channels/email/ses.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../../support/certificate.ts";

const TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail";
const CERT_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem";
const SUBSCRIBE_URL = `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`;
const AT = "2027-01-01T09:00:00.000Z";
type Fields = { [name: string]: string };

function opened(options: { now?: number; fetchText?: (url: string) => Promise<string> } = {}) {
  const fetched: string[] = [];
  const fetchText = async (url: string) => {
    fetched.push(url);
    return options.fetchText ? options.fetchText(url) : CERTIFICATE;
  };
  const provider = sesProvider(
    {
      ...{ region: "eu-west-1", accessKeyId: "A", secretAccessKey: "B", from: "bells@carillon.example" },
      topicArns: [TOPIC],
    },
    { fetchText, now: () => options.now ?? Date.parse(AT) },
  );
  const read = async (fields: Fields | string): Promise<Report[] | undefined> => {
    const body = Buffer.from(typeof fields === "string" ? fields : JSON.stringify(fields));
    assert.ok(provider.report);
    return provider.report({ url: "https://x.example/reports", header: () => undefined, body });
  };
  return { read, fetched };
}

const notification = (text: string, more: Fields = {}): Fields => ({
  Type: "Notification",
  MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  TopicArn: TOPIC,
  Message: text,
  Timestamp: AT,
  SigningCertURL: CERT_URL,
  SignatureVersion: "2",
  ...more,
});
const confirmation = (more: Fields = {}): Fields =>
  notification("You have chosen to subscribe to the topic", {
    Type: "SubscriptionConfirmation",
    Token: "2336412f37",
    SubscribeURL: SUBSCRIBE_URL,
    ...more,
  });

/** By hand, from Amazon's description: names and values on lines of their own, in the order of the alphabet. */
function signed(fields: Fields): Fields {
  const { Message, MessageId, Subject, SubscribeURL, Timestamp, Token, TopicArn, Type } = fields;
  const subject = Subject === undefined ? "" : `Subject\n${Subject}\n`;
  const text =
    Type === "Notification"
      ? `Message\n${Message}\nMessageId\n${MessageId}\n${subject}Timestamp\n${Timestamp}\nTopicArn\n${TopicArn}\nType\n${Type}\n`
      : `Message\n${Message}\nMessageId\n${MessageId}\nSubscribeURL\n${SubscribeURL}\nTimestamp\n${Timestamp}\nToken\n${Token}\nTopicArn\n${TopicArn}\nType\n${Type}\n`;
  const digest = fields.SignatureVersion === "1" ? "sha1" : "sha256";
  return { ...fields, Signature: sign(digest, Buffer.from(text), PRIVATE_KEY).toString("base64") };
}

/** After the examples in Amazon's documentation. */
const mail = {
  timestamp: "2017-08-05T00:40:02.012Z",
  source: "Sender Name <sender@example.com>",
  messageId: "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000",
  destination: ["recipient@example.com"],
};
const bounce = (bounceType: string, more: object = {}) => ({
  bounceType,
  bounceSubType: "General",
  bouncedRecipients: [
    {
      emailAddress: "recipient@example.com",
      action: "failed",
      status: "5.1.1",
      diagnosticCode: "smtp; 550 5.1.1 user unknown",
    },
  ],
  timestamp: "2017-08-05T00:41:02.669Z",
  feedbackId: "01000157c44f053b-61b59c11-9236-11e6-8f96-7be8aexample-000000",
  ...more,
});
const complaint = {
  complainedRecipients: [{ emailAddress: "recipient@example.com" }],
  timestamp: "2017-08-05T00:41:02.669Z",
  complaintFeedbackType: "abuse",
};
const told = {
  receipt: mail.messageId,
  reportId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  at: new Date(AT),
  address: "recipient@example.com",
};
const suppress = (why: "bounce" | "complaint") => ({ suppress: { address: "recipient@example.com", why } });

const EVENTS: [name: string, type: string, event: object, report?: Omit<Report, keyof typeof told>][] = [
  ["a delivery", "Delivery", { delivery: { smtpResponse: "250 ok" } }, { kind: "delivered" }],
  [
    "a permanent bounce",
    "Bounce",
    { bounce: bounce("Permanent") },
    { kind: "failed", ...suppress("bounce"), reason: "smtp; 550 5.1.1 user unknown", code: "5.1.1" },
  ],
  [
    "a transient bounce",
    "Bounce",
    {
      bounce: bounce("Transient", {
        bounceSubType: "MailboxFull",
        bouncedRecipients: [{ emailAddress: "x@example.com" }],
      }),
    },
    { kind: "failed", reason: "Transient bounce, MailboxFull" },
  ],
  ["a complaint", "Complaint", { complaint }, { kind: "delivered", ...suppress("complaint"), code: "abuse" }],
  [
    "a complaint from before",
    "Complaint",
    { complaint: { ...complaint, complaintSubType: "OnAccountSuppressionList" } },
    { kind: "failed", ...suppress("complaint"), reason: "on the suppression list of the account" },
  ],
  ["a rejected mail", "Reject", { reject: { reason: "Bad content" } }, { kind: "failed", reason: "Bad content" }],
  ["a send", "Send", { send: {} }],
  ["an open", "Open", { open: {} }],
  ["a delay", "DeliveryDelay", { deliveryDelay: { delayType: "MailboxFull" } }],
  ["an unknown event", "constructor", {}],
];
for (const [name, type, event, report] of EVENTS) {
  for (const [named, field] of [
    ["event", "eventType"],
    ["notification", "notificationType"],
  ] as const) {
    test(`ses: ${name} as ${named} is ${report ? report.kind : "left out"}`, async () => {
      const text = JSON.stringify({ [field]: type, mail, ...event });
      assert.deepEqual(await opened().read(signed(notification(text))), report ? [{ ...told, ...report }] : []);
    });
  }
}

test("ses: of a mail with copies each one that is named is reported", async () => {
  const copied = { ...mail, destination: ["recipient@example.com", "Copy@example.com", "other@example.com"] };
  const about = async (event: object) =>
    (await opened().read(signed(notification(JSON.stringify({ mail: copied, ...event })))))?.map(
      ({ reportId, address, suppress }) => [reportId.slice(told.reportId.length), address, suppress?.address],
    );
  const delivery = { recipients: ["recipient@example.com", "other@example.com"] };
  assert.deepEqual(await about({ eventType: "Delivery", delivery }), [
    ["", "recipient@example.com", undefined],
    [" 1", "other@example.com", undefined],
  ]);
  const gone = bounce("Permanent", { bouncedRecipients: [{ emailAddress: "copy@example.com" }] });
  assert.deepEqual(await about({ eventType: "Bounce", bounce: gone }), [["", "Copy@example.com", "Copy@example.com"]]);
  const forwarded = bounce("Permanent", { bouncedRecipients: [{ emailAddress: "elsewhere@example.com" }] });
  assert.deepEqual(await about({ eventType: "Bounce", bounce: forwarded }), [
    ["", "recipient@example.com", "recipient@example.com"],
  ]);
});

const text = JSON.stringify({ eventType: "Delivery", mail, delivery: {} });

test("sns: both versions of the signature hold, with a subject and without", async () => {
  for (const version of ["1", "2"]) {
    for (const more of [{}, { Subject: "Amazon SES Email Event Notification" }] as Fields[]) {
      const fields = signed(notification(text, { SignatureVersion: version, ...more }));
      assert.equal((await opened().read(fields))?.length, 1);
      const other = version === "1" ? "2" : "1";
      assert.equal(await opened().read({ ...fields, SignatureVersion: other }), undefined);
    }
  }
});

test("sns: what was changed after it was signed is not believed", async () => {
  const genuine = signed(notification(text, { Subject: "s" }));
  for (const field of [
    "Message",
    "MessageId",
    "Subject",
    "Timestamp",
    "TopicArn",
    "Type",
    "Signature",
    "SignatureVersion",
  ]) {
    assert.equal(await opened().read({ ...genuine, [field]: `x${genuine[field]}` }), undefined, field);
    const { [field]: _, ...without } = genuine;
    assert.equal(await opened().read(without), undefined, `without ${field}`);
  }
});

test("sns: a topic that is not ours is not believed, and nothing is fetched for it", async () => {
  const { read, fetched } = opened();
  assert.equal(await read(signed(notification(text, { TopicArn: `${TOPIC}-of-eve` }))), undefined);
  assert.deepEqual(fetched, []);
});

for (const url of [
  "http://sns.eu-west-1.amazonaws.com/a.pem",
  "https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
  "https://evil.example/sns.eu-west-1.amazonaws.com/a.pem",
  "https://sns.eu-west-1.amazonaws.com@evil.example/a.pem",
  "https://user@sns.eu-west-1.amazonaws.com/a.pem",
  "https://:pass@sns.eu-west-1.amazonaws.com/a.pem",
  "https://sns.eu-west-1.amazonaws.com:8443/a.pem",
  "https://evil.sns.eu-west-1.amazonaws.com/a.pem",
  "https://sns-eve.s3.amazonaws.com/a.pem",
  "https://sns.eu-west-1.amazonaws.com/a.txt",
  "https://sns.eu-west-1.amazonaws.com/a?x=.pem",
  "https://sns.eu-west-1.amazonaws.com/a#.pem",
  "file:///etc/a.pem",
  "https://[::1]/a.pem",
  "",
]) {
  test(`sns: the certificate is not read from ${url || "nowhere"}`, async () => {
    const { read, fetched } = opened();
    assert.equal(await read(signed(notification(text, { SigningCertURL: url }))), undefined);
    assert.deepEqual(fetched, []);
  });
}

test("sns: the certificate is read once, also by reports that come together", async () => {
  const { read, fetched } = opened();
  const fields = signed(notification(text));
  await Promise.all([read(fields), read(fields), read(fields)]);
  await read(fields);
  assert.deepEqual(fetched, [CERT_URL]);
});

test("sns: a certificate that cannot be read is an outage, and is asked for again", async () => {
  let isDown = true;
  const { read, fetched } = opened({
    async fetchText() {
      if (isDown) throw new Error("Amazon SNS did not answer");
      return CERTIFICATE;
    },
  });
  const fields = signed(notification(text));
  await assert.rejects(read(fields), /Amazon SNS/);
  isDown = false;
  assert.equal((await read(fields))?.length, 1);
  assert.equal(fetched.length, 2);
});

test("sns: a certificate that has expired vouches for nothing", async () => {
  assert.equal(await opened({ now: Date.UTC(2300, 0) }).read(signed(notification(text))), undefined);
  assert.equal(await opened({ now: Date.UTC(2000, 0) }).read(signed(notification(text))), undefined);
});

test("sns: a subscription to our topic is confirmed", async () => {
  const { read, fetched } = opened();
  assert.deepEqual(await read(signed(confirmation())), []);
  assert.deepEqual(fetched, [CERT_URL, SUBSCRIBE_URL]);
});

test("sns: a subscription is confirmed only if signed, and only at a host of SNS", async () => {
  for (const fields of [
    { ...signed(confirmation()), SubscribeURL: `${SUBSCRIBE_URL}&x=1` },
    signed(confirmation({ TopicArn: `${TOPIC}-of-eve` })),
    signed(confirmation({ SubscribeURL: "https://evil.example/?Action=ConfirmSubscription" })),
  ]) {
    const { read, fetched } = opened();
    await read(fields);
    assert.deepEqual(
      fetched.filter((url) => url !== CERT_URL),
      [],
    );
  }
});

test("sns: an unsubscription is believed and changes nothing", async () => {
  const { read, fetched } = opened();
  assert.deepEqual(await read(signed(confirmation({ Type: "UnsubscribeConfirmation" }))), []);
  assert.deepEqual(fetched, [CERT_URL], "it is not subscribed again");
});

test("sns: nonsense is not believed, and signed nonsense is no report", async () => {
  for (const body of ["", "null", "[]", "7", "{", '{"Type":"Notification"}']) {
    assert.equal(await opened().read(body), undefined);
  }
  for (const said of [
    "Successfully validated SNS topic for Amazon SES event publishing.",
    "null",
    "[]",
    '{"eventType":"Bounce"}',
  ]) {
    assert.deepEqual(await opened().read(signed(notification(said))), []);
  }
});
