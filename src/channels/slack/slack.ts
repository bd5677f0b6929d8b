// Slack, in its two ways: chat.postMessage with a token, and incoming webhooks, whose URL is the secret.
//
// A message goes to recipient.webhookUrl if it has one, else with the token to recipient.slackChannel, else to the
// webhook of the settings, which belongs to one channel: who sets it up without a token wants everything there.
//
// The body is sent as it is: it is Slack's mrkdwn in the sender's hand, and to escape it would take away links and
// mentions. Whoever puts foreign words into it escapes &, < and > in them, as templates do for HTML. The title is plain
// text on every channel and is escaped here.

import type { Encoded, Message, Provider } from "#channels/channel.ts";
import type { Category, Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import type { Time } from "#wire/clock.ts";
import { ABREAST, createHttp, type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { createPublicHttp, originOf } from "#wire/public-only.ts";

export type SlackSettings = {
  /** A bot's token, xoxb-…, with the scope chat:write. */
  token?: string;
  /** An incoming webhook for messages that name none. */
  webhookUrl?: string;
  apiUrl?: string;
};
export type SlackOptions = SlackSettings & {
  /** Hosts, addresses and CIDRs that webhooks may reach although they are not public. */
  allow: string[];
  now: () => number;
};

type Verdict = { kind: Exclude<Reply["kind"], "accepted">; category?: Category };

const GONE: Verdict = { kind: "dead-recipient", category: "recipient" };

const VERDICTS: [verdict: Verdict, ...errors: string[]][] = [
  [
    GONE,
    ...["channel_not_found", "is_archived", "not_in_channel", "user_not_found", "user_disabled"],
    // These are said of webhooks.
    ...["channel_is_archived", "no_service", "no_service_id", "no_active_hooks", "no_team", "team_disabled"],
    ...["invalid_token", "action_prohibited", "posting_to_general_channel_denied"],
  ],
  [
    { kind: "rejected", category: "recipient" },
    ...["restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel"],
  ],
  [
    { kind: "rejected", category: "credentials" },
    ...["invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope"],
    ...["no_permission", "not_allowed_token_type", "team_access_not_granted", "access_denied", "ekm_access_denied"],
  ],
  [
    { kind: "rejected", category: "content" },
    ...["msg_too_long", "no_text", "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"],
    ...["too_many_attachments", "invalid_arguments", "invalid_payload"],
  ],
  [{ kind: "limited", category: "throttled" }, "ratelimited", "rate_limited", "message_limit_exceeded"],
  // A workspace that is being moved, a service that is away, a request that did not arrive whole: nothing was done.
  [{ kind: "unavailable", category: "outage" }, "service_unavailable", "team_added_to_org", "org_login_required"],
  [{ kind: "unavailable", category: "network" }, "request_timeout"],
  // Of these Slack says that some of the operation may have succeeded.
  [{ kind: "ambiguous", category: "outage" }, "internal_error", "fatal_error", "rollup_error"],
];
const byError = new Map(VERDICTS.flatMap(([verdict, ...errors]) => errors.map((error) => [error, verdict])));

const MAX_BLOCKS = 50;
/** Slack cuts longer texts off. */
const MAX_TEXT = 40_000;

export function slackProvider({ token, webhookUrl, apiUrl = "https://slack.com/api", allow, now }: SlackOptions) {
  const http = createHttp();
  const publicHttp = createPublicHttp({ allow });
  const post = (method: string, body: object, time: Time) =>
    http.ask({
      url: `${apiUrl}/${method}`,
      headers: { "content-type": "application/json; charset=utf-8", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      ...time,
    });

  return {
    name: "slack",
    channels: ["slack"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false, abreast: ABREAST, cost: 0 },
    validate: ({ recipient = {}, content }) => {
      const faults = contentFaults(content);
      const refusal = recipient.webhookUrl && publicHttp.refusalOf(recipient.webhookUrl);
      if (refusal) faults.push({ path: "/recipient/webhookUrl", message: `is refused: ${refusal}` });
      const isReachable = recipient.webhookUrl || webhookUrl || (token && recipient.slackChannel);
      if (!isReachable) faults.push({ path: "/recipient/slackChannel", message: "is needed, and a token with it" });
      return faults;
    },
    // The webhook of the settings is the account's own.
    receiver: ({ request: { recipient } }) => originOf(recipient?.webhookUrl),
    encode: (message) => encodeSlack(message, { token, webhookUrl }),
    async send(message, { signal, timeoutMs }) {
      const { payload, url } = addressOf(message, { token, webhookUrl });
      if (!payload) return NOWHERE;
      if (url === undefined) {
        const answer = await post("chat.postMessage", payload, { signal, timeoutMs });
        return "kind" in answer ? answer : replyOfApi(answer, now());
      }
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify(payload);
      const answer = await publicHttp.ask({ url, headers, body, signal, timeoutMs });
      return "kind" in answer ? answer : replyOfWebhook(answer, now());
    },
    // A webhook cannot be asked anything without sending.
    ...(token && {
      async check(signal: AbortSignal) {
        const answer = await post("auth.test", {}, { signal });
        if ("kind" in answer) return { healthy: false, detail: answer.reason };
        const { ok, error } = readApi(answer.text);
        return { healthy: ok === true, detail: error ?? `answered ${answer.status}` };
      },
    }),
    async close() {
      await Promise.all([http.close(), publicHttp.close()]);
    },
  } satisfies Provider;
}

const NOWHERE: Reply = {
  kind: "rejected",
  reason: "there is neither a webhook nor a channel",
  category: "recipient",
};

type Ways = { token?: string | undefined; webhookUrl?: string | undefined };

/** To a webhook's URL, or without one by the API to a channel. */
function addressOf(
  { request: { recipient = {}, content } }: Message,
  { token, webhookUrl }: Ways,
): { payload?: object; url?: string } {
  const { slackChannel: channel } = recipient;
  if (!recipient.webhookUrl && token && channel) return { payload: { channel, ...payloadOf(content) } };
  const url = recipient.webhookUrl ?? webhookUrl;
  return url ? { payload: payloadOf(content), url } : {};
}

export function encodeSlack(message: Message, ways: Ways): Encoded | Reply {
  const { payload } = addressOf(message, ways);
  return payload ? { type: "application/json", body: JSON.stringify(payload) } : NOWHERE;
}

type Content = NotificationRequest["content"];

function textOf({ title, body, textBody }: Content): string {
  const heading = title?.replace(/\s+/g, " ").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return [heading && `*${heading}*`, body ?? textBody].filter(Boolean).join("\n");
}

/** With blocks the text is what a phone shows as notification. */
const payloadOf = (content: Content): object => ({
  text: textOf(content),
  ...(content.data?.blocks !== undefined && { blocks: content.data.blocks }),
});

function contentFaults(content: Content): Fault[] {
  const faults: Fault[] = [];
  const blocks = content.data?.blocks;
  if (blocks !== undefined && !(Array.isArray(blocks) && blocks.length <= MAX_BLOCKS))
    faults.push({ path: "/content/data/blocks", message: `must be a list of at most ${MAX_BLOCKS}` });
  if (textOf(content).length > MAX_TEXT)
    faults.push({ path: "/content/body", message: `must have at most ${MAX_TEXT} characters with the title` });
  return faults;
}

type ApiAnswer = { ok?: unknown; error?: string; channel?: unknown; ts?: unknown };

function readApi(text: string): ApiAnswer {
  try {
    const { ok, error, channel, ts } = JSON.parse(text);
    return { ok, channel, ts, ...(isError(error) && { error }) };
  } catch {
    return {};
  }
}

/** Slack's errors are single words. Anything else, such as a proxy's page, is not repeated. */
const isError = (value: unknown): value is string => typeof value === "string" && /^[a-z0-9_]{1,64}$/.test(value);

function replyOfApi(answer: HttpAnswer, now: number): Reply {
  const { ok, error, channel, ts } = readApi(answer.text);
  if (answer.status !== 200) return replyToFailure(answer, error, now);
  if (ok === false) return replyToFailure(answer, error, now, { kind: "rejected" });
  if (ok !== true) return { kind: "ambiguous", reason: "Slack answered 200 with something unreadable" };
  return typeof channel === "string" && typeof ts === "string"
    ? { kind: "accepted", receipt: `${channel}:${ts}` }
    : { kind: "accepted" };
}

function replyOfWebhook(answer: HttpAnswer, now: number): Reply {
  const { status, text } = answer;
  // Slack says "ok"; what imitates its webhooks says other things.
  if (status >= 200 && status < 300) return { kind: "accepted" };
  const isGone = status === 404 || status === 410;
  const error = isError(text.trim()) ? text.trim() : undefined;
  return replyToFailure(answer, error, now, isGone ? GONE : verdictOf(status));
}

/** `otherwise` is for words that we do not know, or none. */
function replyToFailure(
  { status, header }: HttpAnswer,
  error: string | undefined,
  now: number,
  otherwise = verdictOf(status),
): Reply {
  const verdict = byError.get(error ?? "") ?? otherwise;
  const failure = { ...verdict, reason: `Slack answered ${error ?? status}`, code: error ?? String(status) };
  const waitMs = retryAfterMs(header("retry-after"), now);
  const mayWait = verdict.kind === "limited" || verdict.kind === "unavailable";
  return mayWait && waitMs !== undefined ? { ...failure, kind: verdict.kind, retryAfterMs: waitMs } : failure;
}

function verdictOf(status: number): Verdict {
  if (status === 429) return { kind: "limited", category: "throttled" };
  if (status === 401 || status === 403) return { kind: "rejected", category: "credentials" };
  return status < 500 ? { kind: "rejected" } : { kind: "ambiguous", category: "outage" };
}
