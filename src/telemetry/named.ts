// How a line of the log names what it is about.

import type { Attempt } from "#domain/attempt.ts";
import { callbackOf } from "#domain/callback.ts";
import { traceIdOf } from "#domain/trace-context.ts";

/** By which it is found in the record, and among the traces if it is part of one. A callback is named beside what it is about. */
export function named({ id, number: attempt, request }: Attempt) {
  const callback = callbackOf(request);
  const name = callback
    ? { callbackId: id, endpointId: callback.endpoint, notificationId: callback.data.notificationId, attempt }
    : { notificationId: id, attempt };
  const traceId = traceIdOf(request);
  return traceId === undefined ? name : { ...name, traceId };
}
