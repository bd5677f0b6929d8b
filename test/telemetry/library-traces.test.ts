// The library inside an application that has traces: what it sends is part of the span that is active there.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { type Context, context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import pg from "pg";
import { createCarillon } from "#index.ts";
import { freshDatabase } from "../support/postgres.ts";
import { email } from "../support/service.ts";

const active = new AsyncLocalStorage<Context>();
context.setGlobalContextManager({
  active: () => active.getStore() ?? ROOT_CONTEXT,
  with: (within, act, self, ...args) => active.run(within, () => act.call(self as never, ...args)),
  bind: (_within, target) => target,
  enable() {
    return this;
  },
  disable() {
    return this;
  },
});
const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));

test("what the library sends is part of the span that is active where it is called, and a worker goes on from there", async (t) => {
  const database = await freshDatabase();
  const carillon = createCarillon({ databaseUrl: database.url });
  const db = new pg.Client(database.url);
  await db.connect();
  t.after(async () => {
    await carillon.close();
    await db.end();
    await database.drop();
  });
  const checkout = trace.getTracer("shop").startSpan("checkout");
  const [sent, refused] = await context.with(trace.setSpan(ROOT_CONTEXT, checkout), () =>
    carillon.sendBatch([email(), { ...email(), idempotencyKey: "\n" }]),
  );
  checkout.end();
  assert.ok(sent && "notificationId" in sent && refused instanceof Error);
  const accepts = exporter.getFinishedSpans().filter(({ name }) => name === "accept email");
  assert.equal(accepts.length, 1, "what is refused was never accepted");
  const [accept] = accepts;
  assert.equal(accept?.parentSpanContext?.spanId, checkout.spanContext().spanId);
  const { rows } = await db.query("select request ->> 'trace' as trace from carillon.notifications");
  const { traceId, spanId } = accept?.spanContext() ?? {};
  assert.deepEqual(rows, [{ trace: `00-${traceId}-${spanId}-01` }]);
});
