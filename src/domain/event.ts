// Everything that can happen to a notification: a line of the record for each, with the status it led from and to.
//
// This is the one list. The database refuses what is not in it, HTTP answers with it and describes it, clients are typed by it, and
// docs/states.md shows it; test/record/events.database.test.ts holds them together.

import { type Static, type TProperties, Type } from "typebox";
import { Instant, oneOf } from "./notification.ts";
import { PRIORITIES } from "./priority.ts";
import type { Status } from "./status.ts";

const event = <
  const Name extends string,
  const From extends Status[],
  const To extends Status[],
  Fields extends TProperties,
>(
  type: Name,
  from: readonly [...From],
  to: readonly [...To],
  fields: Fields,
) => Type.Object({ type: Type.Literal(type), at: Instant, from: oneOf(from), to: oneOf(to), ...fields });

const text = Type.String();
const maybe = Type.Optional;

/** What a provider said later about a message that it had accepted. */
const ReportDetail = Type.Object({ reportedAt: Instant, code: maybe(text), receipt: text });

const Accepted = Type.Object({ type: Type.Literal("accepted"), at: Instant, to: oneOf(["pending", "queued"]) });

/** A leased try that came to something. */
const Attempted = event(
  "attempt",
  ["processing"],
  ["sent", "pending", "failed", "expired", "suppressed", "ambiguous"],
  {
    attempt: Type.Integer(),
    outcome: text,
    provider: maybe(text),
    error: maybe(text),
    detail: maybe(Type.Record(Type.String(), Type.Unknown())),
  },
);

/** Put off by one of our guards; only the first time is told, and the first time that nobody has answered, for `silentMs` by then. */
const Postponed = event("postponed", ["processing"], ["pending"], {
  attempt: Type.Integer(),
  error: text,
  detail: Type.Object({ waitMs: Type.Number(), silentMs: maybe(Type.Number()) }),
});

/** Sent again, by a person or a requeue. */
const Retried = event("retried", ["failed", "ambiguous", "expired", "cancelled"], ["queued"], {});

const Rescheduled = event("rescheduled", ["pending", "queued"], ["pending", "queued"], {
  detail: Type.Object({ scheduledFor: maybe(Instant), expiresAt: maybe(Instant), priority: oneOf(PRIORITIES) }),
});

const Cancelled = event("cancelled", ["pending", "queued"], ["cancelled"], {});

/** It never had its turn; what expires under a worker's hands is an attempt. */
const Expired = event("expired", ["pending", "queued"], ["expired"], {});

const Delivered = event("delivered", ["sent", "ambiguous"], ["delivered"], {
  provider: text,
  detail: Type.Union([ReportDetail, Type.Object({ ackedAt: Instant })]),
});

const Bounced = event("bounced", ["sent", "delivered"], ["failed"], {
  provider: text,
  error: maybe(text),
  detail: ReportDetail,
});

/** Taken off the list of dead letters, by a plan. It has failed all the same. */
const Purged = event("purged", ["failed"], ["failed"], { detail: Type.Object({ plan: text }) });

/** It was made by a reminder: whose, and how long before what. */
const ReminderDue = event("reminder.due", ["queued"], ["queued"], {
  detail: Type.Object({ key: text, at: Instant, before: text }),
});

export const Event = Type.Union([
  Accepted,
  Attempted,
  Postponed,
  Retried,
  Rescheduled,
  Cancelled,
  Expired,
  Delivered,
  Bounced,
  Purged,
  ReminderDue,
]);
export type Event = Static<typeof Event>;
