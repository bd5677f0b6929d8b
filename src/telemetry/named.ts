// How a line of the log names what it is about.

import type { Attempt } from "#domain/attempt.ts";
import { traceIdOf } from "#domain/trace-context.ts";

/** By which it is found in the record, and among the traces if it is part of one. */
export function named({ id: notificationId, number: attempt, request }: Attempt) {
  const traceId = traceIdOf(request);
  return traceId === undefined ? { notificationId, attempt } : { notificationId, attempt, traceId };
}
