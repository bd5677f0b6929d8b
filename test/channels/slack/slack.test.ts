// Slack's API and its incoming webhooks. The answers are those of Slack's documentation.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import { type SlackSettings, slackProvider } from "#channels/slack/slack.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { type Expected, providerSuite } from "../../conformance/provider.ts";
import type { Said } from "../../support/scripted.ts";
import { startStandIn } from "../../support/stand-in.ts";

const TOKEN = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzygqy";
const HOOK = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX";

type Content = NotificationRequest["content"];
const messageTo = (
  recipient: NotificationRequest["recipient"],
  content: Content = { body: "Deploy finished" },
): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: { channel: "slack", content, ...(recipient && { recipient }) },
});
const toChannel = (content?: Content) => messageTo({ slackChannel: "C1H9RESGL" }, content);

const open = (settings: SlackSettings) => slackProvider({ ...settings, allow: ["127.0.0.1"], now: () => 0 });

/** Slack answers 200 whether it did what was asked or not. */
const says = (error: string, expected: Expected): [string, Said, Expected] => [
  error,
  { status: 200, body: { ok: false, error } },
  { code: error, ...expected },
];
const OK = {
  ok: true,
  channel: "C1H9RESGL",
  ts: "1503435956.000247",
  message: { text: "Deploy finished", bot_id: "B19LU7CSY", type: "message", ts: "1503435956.000247" },
};
const GONE = { kind: "dead-recipient", category: "recipient" } as const;
const CREDENTIALS = { kind: "rejected", category: "credentials" } as const;
const CONTENT = { kind: "rejected", category: "content" } as const;
const AMBIGUOUS = { kind: "ambiguous", category: "outage" } as const;

providerSuite("slack", {
  open: (url) => open({ token: TOKEN, apiUrl: `${url}/api` }),
  message: () => toChannel({ title: "CI", body: "Deploy finished" }),
  success: { status: 200, body: OK },
  receipt: "C1H9RESGL:1503435956.000247",
  secrets: [TOKEN],
  inspect(received) {
    assert.equal(received.method, "POST");
    assert.equal(received.path, "/api/chat.postMessage");
    assert.equal(received.headers.authorization, `Bearer ${TOKEN}`);
    assert.equal(received.headers["content-type"], "application/json; charset=utf-8");
    assert.deepEqual(JSON.parse(received.body), { channel: "C1H9RESGL", text: "*CI*\nDeploy finished" });
  },
  errors: [
    says("channel_not_found", GONE),
    says("is_archived", GONE),
    says("not_in_channel", GONE),
    says("restricted_action", { kind: "rejected", category: "recipient" }),
    says("invalid_auth", CREDENTIALS),
    says("not_authed", CREDENTIALS),
    says("token_revoked", CREDENTIALS),
    says("token_expired", CREDENTIALS),
    says("account_inactive", CREDENTIALS),
    says("missing_scope", CREDENTIALS),
    says("msg_too_long", CONTENT),
    says("no_text", CONTENT),
    says("invalid_blocks", CONTENT),
    says("ratelimited", { kind: "limited", category: "throttled" }),
    says("rate_limited", { kind: "limited", category: "throttled" }),
    says("team_added_to_org", { kind: "unavailable", category: "outage" }),
    says("request_timeout", { kind: "unavailable", category: "network" }),
    says("internal_error", AMBIGUOUS),
    says("fatal_error", AMBIGUOUS),
    says("an_error_of_next_year", { kind: "rejected" }),
    [
      "429 with Retry-After",
      { status: 429, headers: { "retry-after": "30" }, body: { ok: false, error: "ratelimited" } },
      { kind: "limited", code: "ratelimited", category: "throttled", retryAfterMs: 30_000 },
    ],
    [
      "503 service_unavailable",
      { status: 503, headers: { "retry-after": "5" }, body: { ok: false, error: "service_unavailable" } },
      { kind: "unavailable", code: "service_unavailable", category: "outage", retryAfterMs: 5_000 },
    ],
    ["500 internal_error", { status: 500, body: { ok: false, error: "internal_error" } }, AMBIGUOUS],
    ["a refusal without a word", { status: 200, body: { ok: false } }, { kind: "rejected" }],
    ["a refusal with a sentence", { status: 200, body: { ok: false, error: `Not\n${TOKEN}!` } }, { kind: "rejected" }],
  ],
  refuses: [
    ["blocks that are no list", toChannel({ body: "x", data: { blocks: {} } }).request, "/content/data/blocks"],
    ["51 blocks", toChannel({ body: "x", data: { blocks: Array(51).fill({}) } }).request, "/content/data/blocks"],
    ["40 001 characters", toChannel({ body: "x".repeat(40_001) }).request, "/content/body"],
    ["a webhook in our network", messageTo({ webhookUrl: "http://10.0.0.1/" }).request, "/recipient/webhookUrl"],
    ["a message to nobody", messageTo(undefined).request, "/recipient/slackChannel"],
  ],
  check: {
    healthy: {
      status: 200,
      body: { ok: true, url: "https://subarachnoid.slack.com/", team: "Subarachnoid Workspace" },
    },
    unhealthy: { status: 200, body: { ok: false, error: "invalid_auth" } },
  },
});

providerSuite("slack webhook", {
  open: () => open({}),
  message: (url) => messageTo({ webhookUrl: `${url}${HOOK}` }),
  success: { status: 200, body: "ok" },
  secrets: [HOOK, "XXXXXXXXXXXXXXXXXXXXXXXX"],
  inspect(received) {
    assert.equal(received.method, "POST");
    assert.equal(received.path, HOOK);
    assert.equal(received.headers["content-type"], "application/json");
    assert.equal(received.headers.authorization, undefined);
    assert.deepEqual(JSON.parse(received.body), { text: "Deploy finished" });
  },
  errors: [
    ["400 invalid_payload", { status: 400, body: "invalid_payload" }, { code: "invalid_payload", ...CONTENT }],
    ["400 no_text", { status: 400, body: "no_text" }, CONTENT],
    ["403 action_prohibited", { status: 403, body: "action_prohibited" }, { code: "action_prohibited", ...GONE }],
    ["403 invalid_token", { status: 403, body: "invalid_token" }, GONE],
    ["403 of a proxy", { status: 403, body: "<h1>Forbidden</h1>" }, { kind: "rejected", code: "403" }],
    ["404 no_service", { status: 404, body: "no_service" }, { code: "no_service", ...GONE }],
    ["404 channel_not_found", { status: 404, body: "channel_not_found" }, GONE],
    ["404 without a word", { status: 404 }, { code: "404", ...GONE }],
    ["410 channel_is_archived", { status: 410, body: "channel_is_archived" }, GONE],
    [
      "429",
      { status: 429, headers: { "retry-after": "1" }, body: "rate_limited" },
      { kind: "limited", category: "throttled", retryAfterMs: 1000 },
    ],
    ["500 rollup_error", { status: 500, body: "rollup_error" }, { code: "rollup_error", ...AMBIGUOUS }],
  ],
});

/** Sends one message and answers with what Slack got: the paths and the bodies. */
async function sent(t: TestContext, settings: (url: string) => SlackSettings, message: (url: string) => Message) {
  const standIn = await startStandIn();
  const provider = open(settings(standIn.url));
  t.after(async () => {
    await provider.close();
    await standIn.close();
  });
  standIn.answer({ status: 200, body: OK });
  const options = { idempotencyKey: "k", timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) };
  const reply = await provider.send(message(standIn.url), options);
  return {
    reply,
    paths: standIn.received.map(({ path }) => path),
    body: JSON.parse(standIn.received[0]?.body ?? "{}"),
  };
}

test("the body keeps its markup, the title is escaped and made one bold line", async (t) => {
  const content = { title: "R&D <!channel>\nnews", body: "see <https://example.com|this> & *that*" };
  const { body } = await sent(
    t,
    (url) => ({ token: TOKEN, apiUrl: url }),
    () => toChannel(content),
  );
  assert.equal(body.text, "*R&amp;D &lt;!channel&gt; news*\nsee <https://example.com|this> & *that*");
});

test("blocks are passed on, and the text with them", async (t) => {
  const blocks = [{ type: "section", text: { type: "mrkdwn", text: "*Deploy* finished" } }];
  const content = { body: "Deploy finished", data: { blocks, other: 1 } };
  const { body } = await sent(
    t,
    (url) => ({ token: TOKEN, apiUrl: url }),
    () => toChannel(content),
  );
  assert.deepEqual(body, { channel: "C1H9RESGL", text: "Deploy finished", blocks });
});

test("the recipient's webhook goes before its channel, and never sees the token", async (t) => {
  const { paths } = await sent(
    t,
    (url) => ({ token: TOKEN, apiUrl: url }),
    (url) => messageTo({ slackChannel: "C1H9RESGL", webhookUrl: `${url}/own` }),
  );
  assert.deepEqual(paths, ["/own"]);
});

test("the webhook of the settings takes what names no other, unless there is a token", async (t) => {
  const one = await sent(
    t,
    (url) => ({ webhookUrl: `${url}/ours` }),
    () => toChannel(),
  );
  assert.deepEqual(one.paths, ["/ours"]);
  const settings = (url: string) => ({ webhookUrl: `${url}/ours`, token: TOKEN, apiUrl: url });
  assert.deepEqual((await sent(t, settings, () => toChannel())).paths, ["/chat.postMessage"]);
});

test("without a token and a webhook there is nowhere to send to", async (t) => {
  const { reply, paths } = await sent(
    t,
    () => ({}),
    () => toChannel(),
  );
  assert.equal(reply.kind, "rejected");
  assert.deepEqual(paths, []);
  const provider = open({});
  assert.equal(provider.check, undefined);
  await provider.close();
});

test("a webhook is not posted to our own network", async (t) => {
  const standIn = await startStandIn();
  const provider = slackProvider({ token: TOKEN, allow: [], now: () => 0 });
  t.after(async () => {
    await provider.close();
    await standIn.close();
  });
  const options = { idempotencyKey: "k", timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) };
  const reply = await provider.send(messageTo({ webhookUrl: standIn.url }), options);
  assert.equal(reply.kind, "rejected");
  assert.equal(standIn.connections().ever, 0);
});
