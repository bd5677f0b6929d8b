// What happened to a notification, from the acceptance on.
//
// `accepted` is read off the notification itself. Each of the others is written in one place, in the statement that makes it true:
//
//   attempt       src/queue/postgres/settle.ts
//   postponed     src/queue/postgres/postponed.ts
//   retried       carillon.retry()
//   rescheduled   carillon.reschedule()
//   cancelled     src/queue/postgres/waiting.ts
//   expired       src/queue/postgres/waiting.ts
//   delivered     carillon.record_delivered()
//   bounced       carillon.apply_report()
//   purged        carillon.purge()
//   reminder.due  src/store/reminder-due.ts

import type { Event } from "#domain/event.ts";
import type { Exchange } from "#domain/exchange.ts";
import type { Queryable } from "#store/connection/database.ts";

/** What is told of an attempt besides its line among the events. */
export type Tried = {
  number: number;
  provider?: string;
  worker?: string;
  startedAt?: string;
  endedAt: string;
  outcome?: string;
  error?: string;
  latencyMs?: number;
  cost?: number;
  exchange?: Exchange;
  /** Where it was claimed from, if that was not PostgreSQL. */
  engine?: string;
};
export type History = { events: Event[]; attempts: Tried[] };

type Row = {
  type: Event["type"];
  at: Date;
  from: string | null;
  to: string;
  attempt: number | null;
  worker: string | null;
  startedAt: Date | null;
  provider: string | null;
  outcome: string | null;
  error: string | null;
  latencyMs: number | null;
  cost: number | null;
  engine: string | null;
  detail: { [name: string]: unknown } | null;
};

/** In the order in which it happened; empty for what is not the tenant's. */
export async function findHistory(db: Queryable, tenant: number, id: string): Promise<History> {
  const { rows } = await db.query<Row>({
    name: "carillon-history",
    text: `select h.type, h.at, h.from_status as "from", h.to_status as "to", h.attempt, w.name as worker,
        h.started_at as "startedAt", h.provider, h.outcome, h.error, h.latency_ms as "latencyMs", h.cost, h.engine, h.detail
      from carillon.history h left join carillon.workers w on w.id = h.worker
      where h.tenant = $1 and h.notification_id = $2 order by h.seq, h.at`,
    values: [tenant, id],
  });
  return { events: rows.map(eventOf), attempts: rows.filter(({ type }) => type === "attempt").map(triedOf) };
}

/** The database let nothing in that is not one of these. */
const eventOf = ({ type, at, from, to, attempt, provider, outcome, error, detail }: Row): Event =>
  withoutNulls({
    type,
    at: at.toISOString(),
    from,
    to,
    attempt,
    provider,
    outcome,
    error,
    detail: toldOf(detail),
  }) as Event;

type Detail = { [name: string]: unknown };

/** What went over the wire is told with its attempt, and to nobody who follows. */
export function toldOf(detail: Detail | null): Detail | null {
  if (detail?.exchange === undefined) return detail && withInstants(detail);
  const { exchange: _, ...rest } = detail;
  return Object.keys(rest).length > 0 ? withInstants(rest) : null;
}

/** What the database wrote as JSON has its instants in a format of its own. */
const INSTANTS: ReadonlySet<string> = new Set(["at", "ackedAt", "reportedAt", "scheduledFor", "expiresAt"]);

/** In place: whoever reads many has no use for the other. */
function withInstants(detail: Detail): Detail {
  for (const name of INSTANTS) {
    const value = detail[name];
    if (typeof value === "string") detail[name] = new Date(value).toISOString();
  }
  return detail;
}

const triedOf = ({
  attempt,
  provider,
  worker,
  startedAt,
  at,
  outcome,
  error,
  latencyMs,
  cost,
  detail,
  engine,
}: Row): Tried =>
  withoutNulls({
    number: attempt,
    provider,
    worker,
    startedAt: startedAt?.toISOString(),
    endedAt: at.toISOString(),
    outcome,
    error,
    latencyMs,
    cost,
    exchange: detail?.exchange,
    engine,
  }) as Tried;

const withoutNulls = (fields: { [name: string]: unknown }) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
