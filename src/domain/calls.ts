// From a fact to the callbacks about it: who is told, and what. Pure.

import { createHash } from "node:crypto";
import { type Callback, type NewCallback, webhookIdOf } from "./callback.ts";
import { type CallbackPolicy, type FifoKey, POLICIES, REQUESTS } from "./endpoint.ts";
import type { Fact, FactType } from "./fact.ts";
import type { TraceContext } from "./trace-context.ts";

/** What a request is told that does not say: that it was sent, and how it ended. */
export const DEFAULT_EVENTS: readonly FactType[] = [
  "sent",
  "delivered",
  "failed",
  "expired",
  "suppressed",
  "ambiguous",
  "cancelled",
];

/** Where a fact may be told, and which are. Without `events`, all. */
export type Told = {
  endpoint: string;
  url?: string;
  events: readonly string[] | null;
  policy: CallbackPolicy;
  fifo: FifoKey | null;
  /** Nothing that happened before. */
  since: Date;
};

export const isTold = ({ type, at }: Fact, { events, since }: Told): boolean =>
  at >= since && (events === null || events.includes(type));

/** What was kept before there were callbacks may name another. */
export const policyNamed = (name: string | null): CallbackPolicy | undefined => POLICIES.find((one) => one === name);

export const typeOf = (type: FactType): string => (type === "reminder.due" ? type : `notification.${type}`);

/** `keptMs`: how long a notification is kept. */
export function callbackAbout(
  fact: Fact,
  about: { at: Date; acceptedAt: Date; userId: string | null; data: Callback["data"]; context: TraceContext },
  told: Told,
  id: string,
  keptMs: number,
): NewCallback {
  const { tenant, notificationId, number, type } = fact;
  const { endpoint, url, policy } = told;
  const line = lineOf(fact, about.userId, told);
  return {
    id,
    tenant,
    policy,
    context: about.context,
    callback: {
      webhookId: webhookIdOf(notificationId, number, type, endpoint),
      endpoint,
      ...(url !== undefined && { url }),
      type: typeOf(type),
      timestamp: about.at.toISOString(),
      data: about.data,
      ...(line !== undefined && { line }),
      ...(policy === "persistent" && { until: new Date(about.acceptedAt.getTime() + keptMs).toISOString() }),
    },
  };
}

/** Lines outlive what they were about: they name nobody. */
const digestOf = (userId: string): string => createHash("sha256").update(userId).digest("base64url").slice(0, 27);

/** The URLs of requests are of as many receivers: these stand in line by notification. */
function lineOf({ tenant, notificationId }: Fact, userId: string | null, { endpoint, fifo }: Told): string | undefined {
  if (fifo === null) return undefined;
  const place = `${tenant} ${endpoint}`;
  if (fifo === "endpoint" && endpoint !== REQUESTS) return place;
  return fifo === "user" && userId !== null && endpoint !== REQUESTS
    ? `${place} user ${digestOf(userId)}`
    : `${place} ${notificationId}`;
}
