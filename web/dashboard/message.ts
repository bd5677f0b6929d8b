// One notification: what became of it and when, what its reader saw, and what can be done about it.

import { get, post } from "./api.ts";
import { confirm } from "./confirm.ts";
import { Explained } from "./explained.ts";
import { html, type VNode } from "./html.ts";
import { type Live, useLive } from "./live.ts";
import type { Listed } from "./messages.ts";
import { titleOf } from "./messages.ts";
import { Card, Code, Facts, Read, When } from "./parts.ts";
import { Rendered } from "./rendered.ts";
import { linkTo } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { type Happened, Timeline } from "./timeline.ts";
import { duration, exact, money, recipientOf, timeOfDay } from "./words.ts";

export type Attempt = {
  number: number;
  provider?: string;
  worker?: string;
  startedAt?: string;
  endedAt?: string;
  outcome?: string;
  error?: string;
  latencyMs?: number;
  cost?: number;
  /** The beginning of each, without credentials. */
  exchange?: { request?: { type: string; body: string }; answer?: { status: number; body: string } };
};
export type Whole = Listed & {
  scheduledFor?: string;
  expiresAt?: string;
  idempotencyKey?: string;
  metadata?: { [name: string]: unknown };
  forgotten?: boolean;
  traceId?: string;
  attempts: Attempt[];
  events: Happened[];
};

const WAITING = ["pending", "queued", "processing"];
const RETRYABLE = ["failed", "ambiguous", "expired", "cancelled"];
const SOON_MS = 2_000;
const LATER_MS = 15_000;

export function Message({ id }: { id: string }): VNode {
  const path = `/v1/notifications/${encodeURIComponent(id)}`;
  const message = useLive(path, (signal) => get<Whole>(path, signal), LATER_MS);
  const { value, reload } = message;
  const isWaiting = value !== undefined && WAITING.includes(value.status);
  // What is on its way is looked at more often.
  useLive(isWaiting ? `${path} soon` : "", async () => isWaiting && reload(), isWaiting ? SOON_MS : undefined);
  return html`
    <p><a href=${linkTo("messages")}>Messages</a></p>
    <${Read} of=${message}>${(one: Whole) => html`<${Shown} message=${one} live=${message} />`}<//>`;
}

function Shown({ message, live }: { message: Whole; live: Live<Whole> }): VNode {
  const { notificationId, status, attempts, events } = message;
  return html`
    <div class="heading"><h1 class="title">${titleOf(message.content)}</h1><${Status} is=${status} /><${Actions} message=${message} live=${live} /></div>
    <${Card}><${Details} message=${message} /><//>
    <${Card} title="What happened"><${Timeline} events=${events} attempts=${attempts} />
      <${Table} label="Events" items=${events} columns=${EVENTS} keyOf=${({ at, type }: Happened) => `${at}${type}`} /><//>
    ${
      attempts.length > 0 &&
      html`<${Card} title="Attempts"><${Table} label="Attempts" items=${attempts} columns=${ATTEMPTS} keyOf=${({ number, startedAt }: Attempt) => `${number} ${startedAt}`} />
        ${attempts.map((attempt) => html`<${ExchangeView} attempt=${attempt} />`)}<//>`
    }
    <${Card} title="As it was read"><${Rendered} message=${message} /><//>
    <${Explained} key=${notificationId} message=${message} />
    <${Card} title="Request"><${Code} label="Request" of=${requestOf(message)} /><//>`;
}

function Details({ message }: { message: Whole }): VNode {
  const { notificationId, channel, priority, enqueuedAt, scheduledFor, expiresAt, recipient, idempotencyKey, traceId } =
    message;
  const { userId } = recipient;
  return html`<${Facts} of=${[
    ["Id", html`<code>${notificationId}</code>`],
    ["To", recipientOf(recipient)],
    typeof userId === "string" && ["User", html`<a href=${linkTo("users", [userId])}>${userId}</a>`],
    ["Channel and lane", `${channel}, ${priority}`],
    ["Accepted", html`${exact(enqueuedAt)} (<${When} at=${enqueuedAt} />)`],
    scheduledFor !== undefined && ["Planned for", exact(scheduledFor)],
    expiresAt !== undefined && ["Expires", exact(expiresAt)],
    idempotencyKey !== undefined && ["Idempotency key", html`<code>${idempotencyKey}</code>`],
    traceId !== undefined && ["Trace", html`<code>${traceId}</code>`],
  ]} />`;
}

const EVENTS: Column<Happened>[] = [
  { title: "When", cell: ({ at }) => html`<time datetime=${at} title=${exact(at)}>${timeOfDay(at)}</time>` },
  { title: "What", cell: ({ type }) => type },
  { title: "Led to", cell: ({ to }) => html`<${Status} is=${to} />` },
  { title: "By", cell: ({ provider }) => provider ?? "–" },
  { title: "Said", isLong: true, cell: ({ outcome, error }) => [outcome, error].filter(Boolean).join(": ") || "–" },
];

const ATTEMPTS: Column<Attempt>[] = [
  { title: "Number", cell: ({ number }) => number },
  { title: "Outcome", cell: ({ outcome }) => (outcome === undefined ? "–" : html`<${Status} is=${outcome} />`) },
  { title: "Provider", cell: ({ provider }) => provider ?? "–" },
  { title: "Error", isLong: true, cell: ({ error }) => error ?? "–" },
  { title: "Began", cell: ({ startedAt }) => (startedAt === undefined ? "–" : timeOfDay(startedAt)) },
  { title: "Took", isNumber: true, cell: ({ latencyMs }) => (latencyMs === undefined ? "–" : duration(latencyMs)) },
  { title: "Cost", isNumber: true, cell: ({ cost }) => (cost === undefined ? "–" : money(cost)) },
];

function ExchangeView({ attempt: { number, exchange } }: { attempt: Attempt }): VNode | null {
  if (exchange === undefined) return null;
  const { request, answer } = exchange;
  return html`<details><summary>What went over the wire in attempt ${number}</summary>
    ${request && html`<h3>Request, ${request.type}</h3><${Code} label=${`Request of attempt ${number}`} of=${request.body} />`}
    ${answer && html`<h3>Answer, ${answer.status}</h3><${Code} label=${`Answer to attempt ${number}`} of=${answer.body || "an empty body"} />`}</details>`;
}

function Actions({
  message: { notificationId, status, recipient },
  live,
}: {
  message: Whole;
  live: Live<Whole>;
}): VNode | null {
  const mayAct = useMay("send");
  if (!mayAct) return null;
  const to = recipientOf(recipient);
  const path = `/v1/notifications/${notificationId}`;
  const retry = () =>
    confirm({
      title: "Send it again?",
      text: `1 notification, to ${to}, goes back to its lane with a fresh budget of attempts.`,
      verb: "Retry",
      act: async () => {
        await post(`${path}/retry`);
        live.reload();
        return "1 notification is on its way again";
      },
    });
  const cancel = () =>
    confirm({
      title: "Cancel it?",
      text: `1 notification, to ${to}, will not be sent.`,
      verb: "Cancel the notification",
      isDangerous: true,
      act: async () => {
        await post(`${path}/cancel`);
        live.reload();
        return "1 notification was cancelled";
      },
    });
  return html`<div class="actions">
    ${RETRYABLE.includes(status) && html`<button type="button" class="primary" onClick=${retry}>Retry</button>`}
    ${(status === "pending" || status === "queued") && html`<button type="button" onClick=${cancel}>Cancel</button>`}
  </div>`;
}

/** What was asked for, as it could be asked for again. */
export function requestOf(message: Whole): { [field: string]: unknown } {
  const { channel, priority, recipient, content, metadata } = message;
  return { channel, priority, recipient, content, ...(metadata && { metadata }) };
}
