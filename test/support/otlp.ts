// A receiver of traces: takes OTLP as JSON over HTTP, and knows the spans that it was given.

import { startStandIn } from "./stand-in.ts";
import { until } from "./until.ts";

export type Exported = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  attributes: { [name: string]: string | number | boolean };
  links: { traceId: string; spanId: string }[];
  isError: boolean;
};

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
type Attribute = { key: string; value: Value };
type Span = Pick<Exported, "traceId" | "spanId" | "name" | "kind"> & {
  parentSpanId?: string;
  traceState?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: Attribute[];
  links?: Exported["links"];
  status?: { code?: number };
};
type Body = { resourceSpans: { scopeSpans: { schemaUrl?: string; spans: Span[] }[] }[] };

const ERROR = 2;

export async function startOtlp() {
  const receiver = await startStandIn();
  receiver.answer(() => ({ status: 200, body: {} }));
  const bodies = () => receiver.received.map(({ body }) => JSON.parse(body) as Body);
  const scopes = () => bodies().flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans));
  const spans = () => scopes().flatMap((scope) => scope.spans.map(exportedOf));
  return {
    /** Where an exporter finds it. */
    endpoint: `${receiver.url}/v1/traces`,
    spans,
    schemas: () => [...new Set(scopes().map(({ schemaUrl }) => schemaUrl))],
    /** Those of a trace, by name, once all of these are there. */
    trace: (traceId: string, names: readonly string[]) =>
      until(async () => {
        const found = new Map(
          spans()
            .filter((span) => span.traceId === traceId)
            .map((span) => [span.name, span]),
        );
        return names.every((name) => found.has(name)) ? found : undefined;
      }, 60_000),
    close: receiver.close,
  };
}

function exportedOf(span: Span): Exported {
  const { traceId, spanId, parentSpanId, traceState, name, kind, attributes = [], links = [], status } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId && { parentSpanId }),
    ...(traceState && { traceState }),
    name,
    kind,
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
    attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, given(value)])),
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    isError: status?.code === ERROR,
  };
}

const given = ({ stringValue, intValue, doubleValue, boolValue }: Value) =>
  stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue ?? "") : Number(intValue));
