// Spans of what happens to a notification, for whoever has loaded an OpenTelemetry SDK. This folder alone knows its API.
//
// The SDK is the operator's, loaded by --import before us. Where there is none there are no Traces, and a step asks by one `?.`. Where there
// is one, its sampler decides at the acceptance. Only what was recorded then is kept with the request, and only that makes spans in a worker: of
// the rest nothing is looked at but that it is not there.
//
// A sender's traceparent is a word from outside. As the parent of our spans it would decide what is recorded, and put them into a trace of
// its choice; so it is for those tenants only that the operator trusts. Others' spans begin a trace of their own, linked to the sender's.
//
// State: the spans of attempts under way, by attempt. What is never ended is forgotten with its attempt.

import { setTimeout as pause } from "node:timers/promises";
import {
  type Attributes,
  type Context,
  context,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Decision } from "#domain/acceptance.ts";
import type { Attempt, Claimed, Ended } from "#domain/attempt.ts";
import { callbackOf } from "#domain/callback.ts";
import type { KeptRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { TraceContext } from "#domain/trace-context.ts";
import type { Guard } from "#guards/guard.ts";
import * as names from "./conventions.ts";
import { endAccepted, endBy, fail, linkBoth } from "./endings.ts";
import { isSameTrace, spanContextOf, traceparentOf } from "./span-context.ts";
import { tracedGuard } from "./traced-guard.ts";

/** Whose traces ours are part of: those of the tenant `default`, of all tenants, or of none. */

export type TraceParents = "default" | "all" | "none";

/** A request whose acceptance is recorded. */
export type Accepting = { span: Span; trace: string };

/** A report of a provider about a notification that is part of a trace. */
export type Reported = { id: string; tenant: number; channel: string; kind: string; request: TraceContext };

/** Of an attempt that is recorded: its span, in whose context those of its steps begin. */
type Trail = { span: Span; context: Context; settling?: Span };

/** What spans are about. */
type About = { id: string; request: { channel: string } };

const DEFAULT_TENANT = 1;
/** Who stops is waited for. */
const FLUSH_MS = 2_000;

/** Undefined where no SDK is loaded. */
export function openTraces(parents: TraceParents): Traces | undefined {
  const provider = trace.getTracerProvider();
  if (provider instanceof ProxyTracerProvider && provider.getDelegate() === new ProxyTracerProvider().getDelegate()) {
    return undefined;
  }
  return new Traces(provider.getTracer("carillon", undefined, { schemaUrl: names.SCHEMA_URL }), parents);
}

export class Traces {
  readonly #tracer: Tracer;
  readonly #parents: TraceParents;
  readonly #trails = new WeakMap<Attempt, Trail>();

  constructor(tracer: Tracer, parents: TraceParents) {
    this.#tracer = tracer;
    this.#parents = parents;
  }

  /** Before it is stored, as its context is stored with it. Undefined where it is not recorded. */
  accepting(tenant: number, id: string, request: KeptRequest): Accepting | undefined {
    const given = spanContextOf(request.traceparent, request.tracestate);
    const around = trace.getSpanContext(context.active());
    const isParent = given !== undefined && !around && this.#trusts(tenant);
    const isLinked = given !== undefined && !isParent && given.traceId !== around?.traceId;
    const span = this.#start(
      "accept",
      { id, request },
      {
        kind: SpanKind.PRODUCER,
        attributes: { [names.TENANT]: tenant, [names.PRIORITY]: request.priority ?? "normal" },
        ...(isLinked && { links: [{ context: given }] }),
      },
      isParent ? trace.setSpanContext(ROOT_CONTEXT, given) : context.active(),
    );
    return span.isRecording() ? { span, trace: traceparentOf(span.spanContext()) } : undefined;
  }

  /** Ends their spans, by what became of each. */
  async accepted<Outcome extends Decision | undefined>(
    rows: readonly { accepting: Accepting | undefined }[],
    keep: () => Promise<Outcome[]>,
  ): Promise<Outcome[]> {
    try {
      const decisions = await keep();
      for (const [n, { accepting }] of rows.entries()) if (accepting) endAccepted(accepting.span, decisions[n]);
      return decisions;
    } catch (error) {
      for (const { accepting } of rows) if (accepting) endBy(accepting.span, error);
      throw error;
    }
  }

  /** All of one claim: how long each waited, and the claim that many share. */
  claimed(attempts: readonly Claimed[]): void {
    let shared: Span | undefined;
    for (const attempt of attempts) {
      const { tenant, request, lease, rank, number } = attempt;
      const parent = this.#parentOf(tenant, request);
      if (!parent) continue;
      const [askedAt, answeredAt] = [epochMs(lease.claimedAt), epochMs(lease.answeredAt)];
      const attributes = {
        [names.TENANT]: Math.abs(tenant),
        // Callbacks have a lane of their own.
        [names.PRIORITY]: PRIORITIES[rank],
        [names.ATTEMPT]: number,
      };
      const span = this.#startAttempt(attempt, { kind: SpanKind.CONSUMER, startTime: askedAt, attributes }, parent);
      if (!span.isRecording()) continue;
      // How long by the database's clock, which may not be ours; until when by ours, as all others here.
      const waitedMs = Math.max(0, lease.claimedAtMs - attempt.sinceMs);
      this.#start("wait", attempt, { startTime: askedAt - waitedMs, attributes }, parent).end(askedAt);
      shared ??= this.#startShared("claim", attempts.length, askedAt);
      const trail: Trail = { span, context: trace.setSpan(ROOT_CONTEXT, span) };
      const claim = this.#start("claim", attempt, { kind: SpanKind.CLIENT, startTime: askedAt }, trail.context);
      linkBoth(claim, shared);
      claim.end(answeredAt);
      this.#trails.set(attempt, trail);
    }
    shared?.end(epochMs(attempts[0]?.lease.answeredAt ?? 0));
  }

  rendering<Value>(attempt: Attempt, work: Promise<Value>): Promise<Value> {
    const trail = this.#trails.get(attempt);
    if (!trail) return work;
    const span = this.#start("render", attempt, {}, trail.context);
    work.then(
      () => span.end(),
      (error: unknown) => endBy(span, error),
    );
    return work;
  }

  /** Each provider that is asked has a span for its guards and one for the send, in whose context the receiver goes on. */
  guarding(attempt: Attempt, guard: Guard): Guard {
    const trail = this.#trails.get(attempt);
    return trail
      ? tracedGuard(guard, (step, provider) =>
          this.#start(
            step,
            attempt,
            {
              kind: step === "send" ? SpanKind.CLIENT : SpanKind.INTERNAL,
              attributes: { [names.PROVIDER]: provider.name },
            },
            trail.context,
          ),
        )
      : guard;
  }

  /** The last step of an attempt, and with it the attempt. */
  settling<Settled>(
    { attempt, settlement, line }: Ended,
    work: Promise<Settled | undefined>,
  ): Promise<Settled | undefined> {
    const trail = this.#trails.get(attempt);
    if (!trail) return work;
    const { span } = trail;
    const settling = this.#start("settle", attempt, { kind: SpanKind.CLIENT }, trail.context);
    trail.settling = settling;
    work.then(
      (settled) => {
        settling.end();
        if (!settled) return fail(span, "lease-lost").end();
        span.setAttribute(names.STATUS, settlement.to);
        if (line) span.setAttribute(names.OUTCOME, line.outcome);
        if (settlement.to === "failed" || settlement.to === "ambiguous") fail(span, line?.outcome ?? settlement.to);
        span.end();
      },
      (error: unknown) => {
        endBy(settling, error);
        endBy(span, error);
      },
    );
    return work;
  }

  /** The commit that many settlements share. */
  async settlingTogether<Answer>(batch: readonly Ended[], work: Promise<Answer>): Promise<Answer> {
    let shared: Span | undefined;
    for (const { attempt } of batch) {
      const settling = this.#trails.get(attempt)?.settling;
      if (!settling) continue;
      shared ??= this.#startShared("settle", batch.length);
      linkBoth(settling, shared);
    }
    try {
      return await work;
    } finally {
      shared?.end();
    }
  }

  reported(reports: readonly Reported[]): void {
    for (const { id, tenant, channel, kind, request } of reports) {
      const parent = this.#parentOf(tenant, request);
      if (parent) this.#start(kind, { id, request: { channel } }, { kind: SpanKind.CONSUMER }, parent).end();
    }
  }

  /** What was recorded last is exported before the process ends, unless nobody takes it in time. Never rejects. */
  async flush(): Promise<void> {
    const given: object = trace.getTracerProvider();
    const provider = "getDelegate" in given && typeof given.getDelegate === "function" ? given.getDelegate() : given;
    if (typeof provider.forceFlush !== "function") return;
    await Promise.race([provider.forceFlush().catch(() => undefined), pause(FLUSH_MS, undefined, { ref: false })]);
  }

  #trusts(tenant: number): boolean {
    // Callbacks have their tenant's number below zero.
    return this.#parents === "all" || (this.#parents === "default" && Math.abs(tenant) === DEFAULT_TENANT);
  }

  /** In which context a worker's spans of it begin. The state that a sender gave is its own trace's: where ours is another, none. */
  #parentOf(tenant: number, { trace: kept, traceparent, tracestate }: TraceContext): Context | undefined {
    if (kept === undefined && (traceparent === undefined || !this.#trusts(tenant))) return undefined;
    const known = kept ?? traceparent;
    const spanContext = spanContextOf(known, isSameTrace(known, traceparent) ? tracestate : undefined);
    return spanContext && trace.setSpanContext(ROOT_CONTEXT, spanContext);
  }

  /** A callback is one about a notification, which is named beside it. */
  #startAttempt(attempt: Claimed, options: SpanOptions, parent: Context): Span {
    const callback = callbackOf(attempt.request);
    if (!callback) return this.#start("deliver", attempt, options, parent);
    const { type, endpoint, data } = callback;
    const attributes = {
      ...options.attributes,
      [names.EVENT]: type,
      [names.ENDPOINT]: endpoint,
      [names.CONVERSATION_ID]: String(data.notificationId),
    };
    return this.#start("callback", attempt, { ...options, attributes }, parent, type);
  }

  #start(step: string, about: About, options: SpanOptions, parent: Context, name = about.request.channel): Span {
    const attributes: Attributes = {
      [names.SYSTEM]: "carillon",
      [names.OPERATION]: step,
      [names.DESTINATION]: about.request.channel,
      [names.MESSAGE_ID]: about.id,
      ...options.attributes,
    };
    const type = names.TYPES[step];
    if (type !== undefined) attributes[names.OPERATION_TYPE] = type;
    return this.#tracer.startSpan(`${step} ${name}`, { ...options, attributes }, parent);
  }

  /** What is done for many at once is part of no one's trace: it has one of its own. */
  #startShared(step: "claim" | "settle", count: number, startTime?: number): Span {
    const attributes = {
      [names.SYSTEM]: "carillon",
      [names.OPERATION]: step,
      [names.OPERATION_TYPE]: names.TYPES[step],
      [names.BATCH_COUNT]: count,
    };
    const options: SpanOptions = { root: true, kind: SpanKind.CLIENT, attributes };
    if (startTime !== undefined) options.startTime = startTime;
    return this.#tracer.startSpan(`${step} batch`, options, ROOT_CONTEXT);
  }
}

/** Of an instant of our monotonic clock. */
const epochMs = (at: number): number => Date.now() - (performance.now() - at);
