// How lines of the log name what they are about.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "#domain/attempt.ts";
import { acceptedRow } from "#domain/callback.ts";
import { named } from "#telemetry/named.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const context = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };
const attemptAt = (id: string, request: object) => ({ id, number: 2, request }) as unknown as Attempt;

test("a line of the log names a notification by its id, and its trace", () => {
  const request = { channel: "console", content: {} };
  assert.deepEqual(named(attemptAt("n", request)), { notificationId: "n", attempt: 2 });
  assert.deepEqual(named(attemptAt("n", { ...request, ...context })), {
    notificationId: "n",
    attempt: 2,
    traceId: TRACE_ID,
  });
});

test("a line about a callback names the notification that it is about, and its own id apart", () => {
  const callback = { webhookId: "msg_1", endpoint: "ep_1", type: "notification.sent", timestamp: "" };
  const row = acceptedRow({
    id: "c",
    tenant: 1,
    policy: "best_effort",
    context,
    callback: { ...callback, data: { notificationId: "n" } },
  });
  assert.deepEqual(named(attemptAt("c", JSON.parse(row).r)), {
    callbackId: "c",
    endpointId: "ep_1",
    notificationId: "n",
    attempt: 2,
    traceId: TRACE_ID,
  });
});
