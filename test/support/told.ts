// Facts as sinks are told them, made up.

import { randomUUID } from "node:crypto";
import { FACT_TYPES, type FactType } from "#domain/fact.ts";
import { toldBody } from "#domain/fact-body.ts";
import type { Told } from "#sinks/sink.ts";

let ordinal = 0;

export function tell({
  notificationId = randomUUID() as string,
  number = 0,
  type = FACT_TYPES[number] ?? "accepted",
  tenant = "default",
  detail = {},
}: {
  notificationId?: string;
  number?: number;
  type?: FactType;
  tenant?: string;
  detail?: { [name: string]: unknown };
} = {}): Told {
  const at = new Date(Date.UTC(2027, 0, 1) + ordinal);
  const position = { epoch: 1, key: 1000, seq: 1, ordinal: ++ordinal };
  const fact = { position, type, at, tenant: 1, notificationId, number };
  const attempted = {
    attempt: 1,
    provider: "console",
    outcome: "accepted",
    error: null,
    latencyMs: 12.5,
    cost: 0.0075,
  };
  return {
    fact,
    tenant,
    body: toldBody(fact, {
      ...attempted,
      event: type,
      from: "queued",
      to: "sent",
      channel: "email",
      priority: "normal",
      userId: "u-1",
      acceptedAt: at,
      detail,
    }),
  };
}

/** `each` facts of so many notifications, mixed as they come from a feed: in order for each of them. */
export function tellMany(notifications: number, each: number): Told[] {
  const ids = Array.from({ length: notifications }, () => randomUUID() as string);
  return Array.from({ length: each }, (_, number) =>
    ids.map((notificationId) => tell({ notificationId, number })),
  ).flat();
}
