// A fact as it is told over HTTP.

import { type Static, Type } from "typebox";
import { FACT_TYPES, type Fact, type FactDetail, factId, writtenPosition } from "./fact.ts";
import { Instant, oneOf } from "./notification.ts";
import { PRIORITIES } from "./priority.ts";
import { STATUSES } from "./status.ts";

const maybe = Type.Optional;
const text = Type.String();

export const FactBody = Type.Object({
  position: Type.String({ description: "Where to go on after this one" }),
  id: Type.String({ description: "The same however often it is told" }),
  type: oneOf(FACT_TYPES),
  at: Instant,
  notificationId: Type.String({ format: "uuid" }),
  event: maybe(Type.String({ description: "What the record calls it" })),
  from: maybe(oneOf(STATUSES)),
  to: maybe(oneOf(STATUSES)),
  attempt: maybe(Type.Integer()),
  provider: maybe(text),
  outcome: maybe(text),
  error: maybe(text),
  latencyMs: maybe(Type.Number()),
  cost: maybe(Type.Number()),
  channel: maybe(text),
  priority: maybe(oneOf(PRIORITIES)),
  userId: maybe(text),
  acceptedAt: maybe(Instant),
  detail: maybe(Type.Record(Type.String(), Type.Unknown())),
});
export type FactBody = Static<typeof FactBody>;

/** Without where it stands in the feed, which means nothing to whoever does not follow it. */
export type ToldBody = Omit<FactBody, "position">;

export const factBody = (fact: Fact, detail: FactDetail | undefined): FactBody => ({
  position: writtenPosition(fact.position),
  ...toldBody(fact, detail),
});

export function toldBody(fact: Fact, detail: FactDetail | undefined): ToldBody {
  const body: { [name: string]: unknown } = {
    id: factId(fact),
    type: fact.type,
    at: fact.at.toISOString(),
    notificationId: fact.notificationId,
  };
  // One by one: by way of Object.entries() and back it takes three times as long, and a sink is told millions.
  for (const name in detail) {
    const value = detail[name as keyof FactDetail];
    if (value !== null) body[name] = value instanceof Date ? value.toISOString() : value;
  }
  return body as ToldBody;
}
