// What a message of a source says: whose request it is, and which. Its value is the request as JSON, or a CloudEvent with the request as its data; what
// the request does not say itself may stand in headers.

import type { Priority } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { contextOf, withContext } from "#domain/trace-context.ts";
import { type Message, MOST_HEADER_BYTES } from "#sources/source.ts";
import { MAX_REQUEST_BYTES } from "#steps/walk/rows.ts";

export type ReadingSettings = {
  /** Whose the requests are that name none. */
  tenant?: string | undefined;
  /** Whether a header may name the tenant. */
  tenantHeader?: boolean | undefined;
};

export type Said = { tenant: string | undefined; request: unknown };

/** What other systems call them. */
const PRIORITIES: Readonly<Record<string, Priority>> = { HIGH: "high", MEDIUM: "normal", LOW: "low" };
const STRUCTURED = "application/cloudevents+json";
const JSON_TYPE = /^application\/(json|[\w.-]+\+json)\s*(;|$)/i;

/** The request is not judged here. */
export function readMessage(
  { headers, headerBytes }: Message,
  value: Buffer,
  settings: ReadingSettings,
): Said | Problem {
  if (headerBytes > MOST_HEADER_BYTES) return tooLarge(`headers have at most ${MOST_HEADER_BYTES} bytes`);
  if (value.length > MAX_REQUEST_BYTES) return tooLarge(`a message has at most ${MAX_REQUEST_BYTES} bytes`);
  const tenant = tenantOf(headers.get("carillon-tenant"), settings);
  if (tenant instanceof Problem) return tenant;
  const event = eventOf(headers, value);
  if (event instanceof Problem) return event;
  return { tenant, request: filled(event, headers) };
}

const tooLarge = (detail: string) => new Problem("PAYLOAD_TOO_LARGE", detail);

function tenantOf(
  named: string | undefined,
  { tenant, tenantHeader = false }: ReadingSettings,
): string | undefined | Problem {
  if (named === undefined || named === tenant) return tenant;
  // Nobody's request becomes another's because a header was overlooked.
  return tenantHeader ? named : new Problem("FORBIDDEN", "this source takes no tenant from a header");
}

type Event = { request: unknown; traceparent?: unknown; tracestate?: unknown };

function eventOf(headers: ReadonlyMap<string, string>, value: Buffer): Event | Problem {
  const type = headers.get("content-type") ?? "";
  const isStructured = type.toLowerCase().startsWith(STRUCTURED);
  const isBinary = headers.has("ce_specversion");
  if (type !== "" && !JSON_TYPE.test(type))
    return new Problem("UNSUPPORTED_MEDIA_TYPE", "a message must be application/json");
  const parsed = parse(value);
  if (parsed instanceof Problem) return parsed;
  if (isBinary && !isStructured) {
    const fault = faultOfVersion(headers.get("ce_specversion"));
    const { ce_traceparent: traceparent, ce_tracestate: tracestate } = Object.fromEntries(headers);
    return fault ?? { request: parsed, traceparent, tracestate };
  }
  if (!isStructured) return { request: parsed };
  if (!isObject(parsed)) return invalid([{ path: "", message: "must be a CloudEvent, which is an object" }]);
  const fault = faultOfVersion(parsed.specversion);
  if (fault) return fault;
  if (parsed.data === undefined) return invalid([{ path: "/data", message: "is required: the request" }]);
  return { request: parsed.data, traceparent: parsed.traceparent, tracestate: parsed.tracestate };
}

const faultOfVersion = (version: unknown): Problem | undefined =>
  version === "1.0" ? undefined : invalid([{ path: "/specversion", message: "must be 1.0" }]);

const text = new TextDecoder("utf-8", { fatal: true });

function parse(value: Buffer): unknown {
  try {
    // What is not UTF-8 is no JSON, instead of being patched up into something that nobody wrote.
    return JSON.parse(text.decode(value));
  } catch (error) {
    return new Problem("MALFORMED_JSON", "the message is not JSON in UTF-8", { cause: error });
  }
}

type Fields = { [name: string]: unknown };
const isObject = (value: unknown): value is Fields =>
  value !== null && typeof value === "object" && !Array.isArray(value);
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

function filled({ request, traceparent, tracestate }: Event, headers: ReadonlyMap<string, string>): unknown {
  if (!isObject(request)) return request;
  const { priority } = request;
  if (typeof priority === "string" && Object.hasOwn(PRIORITIES, priority)) request.priority = PRIORITIES[priority];
  const key = headers.get("idempotency-key");
  if (key !== undefined && request.idempotencyKey === undefined) request.idempotencyKey = key;
  const context =
    contextOf(headers.get("traceparent"), headers.get("tracestate")) ??
    contextOf(textOf(traceparent), textOf(tracestate));
  return withContext(request, context);
}
