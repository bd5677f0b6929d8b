// The tools that only look.

import { Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { STATUSES } from "#domain/status.ts";
import { quoted } from "./quoted.ts";
import type { Tool } from "./tool.ts";

type Row = { [field: string]: unknown };
const rows = (value: unknown): Row[] => (Array.isArray(value) ? value : []);
const maybeQuoted = (value: unknown) => (typeof value === "string" ? quoted(value) : undefined);

export const findNotifications: Tool = {
  name: "find_notifications",
  title: "Find notifications",
  description:
    "The newest notifications that fit, with their status; never what they say. For why one did not arrive use why_not_delivered.",
  scope: "read",
  input: strict({
    userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    recipient: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
    status: Type.Optional(oneOf(STATUSES)),
    channel: Type.Optional(oneOf(CHANNELS)),
    since: Type.Optional(Instant),
    until: Type.Optional(Instant),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 20 })),
    cursor: Type.Optional(Type.String({ maxLength: 64 })),
  }),
  async look({ limit = 20, ...query }, { inside }) {
    const { data, nextCursor } = await inside("GET /v1/notifications", { query: { ...query, limit } });
    const found = rows(data).map(({ notificationId, status, channel, priority, enqueuedAt, recipient }) => ({
      notificationId,
      status,
      channel,
      priority,
      enqueuedAt,
      ...(maybeQuoted((recipient as Row)?.userId) && { userId: maybeQuoted((recipient as Row).userId) }),
    }));
    const lines = found.map(
      (one) => `${one.enqueuedAt} ${one.notificationId} ${one.channel} ${one.status} ${one.userId ?? ""}`,
    );
    return { text: lines.join("\n") || "Nothing fits.", data: { notifications: found, nextCursor } };
  },
};

export const overview: Tool = {
  name: "overview",
  title: "How is everything?",
  description:
    "What waits and what is paused, what nobody takes, each provider's health and breaker, and the balance of everything accepted.",
  scope: "read",
  input: strict({}),
  async look(_given, { inside }) {
    const queue = await inside("GET /v1/queue");
    const ledger = await inside("GET /v1/ledger");
    const providers = rows((await inside("GET /v1/providers")).data).map(({ name, routes, breaker, health }) => ({
      name,
      routes,
      breaker: (breaker as Row)?.state,
      healthy: (health as Row | undefined)?.healthy ?? "unknown",
    }));
    const paused = rows(queue.paused).map(({ kind, name, reason, until }) => ({
      kind,
      name,
      reason: maybeQuoted(reason),
      until,
    }));
    const { depth, processing, scheduled, oldestAgeMs, untaken } = queue;
    const data = { depth, processing, scheduled, oldestAgeMs, paused, untaken, providers, ledger };
    return { text: JSON.stringify(data, undefined, 1), data };
  },
};

export const deadLetters: Tool = {
  name: "dead_letters",
  title: "What failed for good, by cause",
  description:
    "Groups of notifications that failed for good: how many, by which provider, with which error, and three ids of each.",
  scope: "read",
  input: strict({
    channel: Type.Optional(oneOf(CHANNELS)),
    since: Type.Optional(Instant),
    until: Type.Optional(Instant),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 20 })),
  }),
  async look({ limit = 20, ...query }, { inside }) {
    const { data, total } = await inside("GET /v1/dead-letters/groups", { query: { ...query, limit } });
    const groups = rows(data).map(({ cause, ...group }) => ({ ...group, cause: maybeQuoted(cause) }));
    const lines = groups.map((group) => JSON.stringify(group));
    return { text: [`${total} failed for good.`, ...lines].join("\n"), data: { total, groups } };
  },
};
