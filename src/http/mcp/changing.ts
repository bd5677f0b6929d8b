// The tools that change something. Each looks first and tells what it would do; what it then does is what its caller could do over HTTP.

import { Type } from "typebox";
import { CHANNELS, Instant, NotificationRequest, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { Id } from "#http/core/schemas.ts";
import { findSuppressed } from "#store/suppressions.ts";
import { quoted } from "./quoted.ts";
import type { Tool } from "./tool.ts";

const RETRIED = ["failed", "ambiguous", "expired", "cancelled"];
const CANCELLED = ["pending", "queued"];
const ofNotification = strict({ notificationId: Id });
const params = ({ notificationId }: { [name: string]: unknown }) => ({ params: { id: notificationId } });

export const send: Tool = {
  name: "send_notification",
  title: "Send a notification",
  description:
    "Sends a notification. The dry run says whether it is valid, who would carry it and what would become of it.",
  scope: "send",
  input: strict({
    notification: Type.Unsafe<object>(Type.Object(NotificationRequest.properties, { additionalProperties: false })),
  }),
  async look({ notification }, { inside }) {
    const { wouldSend, status, provider, suppressed, dueAt } = await inside("POST /v1/explain", { body: notification });
    const data = { wouldSend, status, provider, suppressed, dueAt };
    return { text: `It would ${wouldSend ? "be sent" : "not be sent"}: ${JSON.stringify(data)}`, data };
  },
  async change({ notification }, { inside }, { once }) {
    // Confirmed twice it is sent once.
    const body = { idempotencyKey: `mcp-${once}`, ...(notification as object) };
    const { notificationId, status } = await inside("POST /v1/notifications", { body });
    return { text: `Accepted as ${notificationId}, ${status}.`, data: { notificationId, status } };
  },
};

export const retry: Tool = {
  name: "retry_notification",
  title: "Send a notification again",
  description: "Sends one again that failed, expired, was cancelled or is ambiguous, with a fresh budget of attempts.",
  scope: "send",
  input: ofNotification,
  async look(given, { inside }) {
    const { status, channel } = await inside("GET /v1/notifications/:id", params(given));
    if (!RETRIED.includes(String(status))) throw new Problem("NOT_RETRYABLE", `it is ${status}`);
    return { text: `It is ${status}, and would be sent again by ${channel}.`, data: { status, channel } };
  },
  async change(given, { inside }) {
    const { status } = await inside("POST /v1/notifications/:id/retry", params(given));
    return { text: `It is ${status}.`, data: { status } };
  },
};

export const cancel: Tool = {
  name: "cancel_notification",
  title: "Cancel a notification",
  description: "Cancels one that nobody has taken up yet. It will not be sent.",
  scope: "send",
  input: ofNotification,
  async look(given, { inside }) {
    const { status, channel, scheduledFor } = await inside("GET /v1/notifications/:id", params(given));
    if (!CANCELLED.includes(String(status))) throw new Problem("NOT_CANCELLABLE", `it is ${status}`);
    return { text: `It is ${status}, and would never be sent.`, data: { status, channel, scheduledFor } };
  },
  async change(given, { inside }) {
    const { cancelled, reason } = await inside("POST /v1/notifications/:id/cancel", params(given));
    return { text: cancelled ? "It is cancelled." : `It is not cancelled: ${reason}`, data: { cancelled, reason } };
  },
};

export const liftSuppression: Tool = {
  name: "lift_suppression",
  title: "Send to an address again",
  description: "Takes an address off the list of those to which nothing more is sent.",
  scope: "send",
  input: strict({ address: Type.String({ minLength: 3, maxLength: 254 }) }),
  async look({ address }, { db, actor: { tenant } }) {
    const [why] = [...(await findSuppressed(db, [{ tenant, address: String(address) }])).values()];
    if (!why) throw new Problem("NOT_FOUND", "the address is not suppressed");
    return { text: `It is suppressed (${why}), and would be sent to again.`, data: { suppressed: why } };
  },
  async change({ address }, { inside }) {
    await inside("DELETE /v1/suppressions/:address", { params: { address } });
    return { text: "It is no longer suppressed.", data: { suppressed: false } };
  },
};

export const requeue: Tool = {
  name: "requeue_dead_letters",
  title: "Send dead letters again",
  description:
    "Sends again what failed for good and fits. The dry run makes a plan: how many, what it costs, what is left out and why. Confirmed, the plan is carried " +
    "out: ten go first, and the others once all of those were sent.",
  scope: "send",
  input: strict({
    channel: Type.Optional(oneOf(CHANNELS)),
    provider: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    cause: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    since: Instant,
    until: Type.Optional(Instant),
  }),
  async look(filter, { inside }) {
    const plan = await inside("POST /v1/plans", { body: { kind: "requeue", filter } });
    const { planId, state, count, excluded, estimate } = plan;
    const data = { planId, state, count, excluded, estimate };
    return { text: `${count} would be sent again: ${JSON.stringify(data)}`, data };
  },
  async change(_filter, { inside }, { seen }) {
    const given = { params: { id: seen.planId }, body: { canary: 10, continue: "sent" } };
    const { planId, state, progress } = await inside("POST /v1/plans/:id/apply", given);
    return { text: `Plan ${planId} is ${state}.`, data: { planId, state, progress } };
  },
};

const KINDS = ["channel", "provider", "tenant"] as const;
const pathOf = (kind: unknown, verb: string) => `POST /v1/${kind}s/:name/${verb}`;

export const setPause: Tool = {
  name: "set_pause",
  title: "Pause or resume a channel, provider or tenant",
  description: "Stops something without losing or spending anything, or lets it go on.",
  scope: "admin",
  input: strict({
    kind: oneOf(KINDS),
    name: Type.String({ minLength: 1, maxLength: 63 }),
    to: oneOf(["paused", "running"]),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  }),
  async look({ kind, name, to, reason }, { inside }) {
    if (to === "paused" && reason === undefined) throw new Problem("VALIDATION_FAILED", "say why: reason");
    const { data = [] } = (await inside("GET /v1/pauses")) as { data?: { [field: string]: unknown }[] };
    const now = data.find((pause) => pause.kind === kind && pause.name === name);
    const is = now ? `paused (${quoted(String(now.reason))})` : "running";
    return {
      text: `The ${kind} ${name} is ${is}, and would be ${to}.`,
      data: { kind, name, now: now ? "paused" : "running", to },
    };
  },
  async change({ kind, name, to, reason }, { inside }) {
    if (to === "paused") await inside(pathOf(kind, "pause"), { params: { name }, body: { reason } });
    else await inside(pathOf(kind, "resume"), { params: { name } });
    return { text: `The ${kind} ${name} is ${to}.`, data: { kind, name, now: to } };
  },
};
