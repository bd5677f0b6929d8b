// What an operator loads by --import: an SDK that exports spans to where OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says. Tests say how often, and
// whether what has no parent is sampled.

import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";

const { SAMPLED_ROOTS = "all", EXPORTED_EVERY_MS = "100" } = process.env;
const sampler = new ParentBasedSampler({
  root: SAMPLED_ROOTS === "none" ? new AlwaysOffSampler() : new AlwaysOnSampler(),
});
const exporter = new OTLPTraceExporter();
const spanProcessors = [new BatchSpanProcessor({ exporter, scheduledDelayMillis: Number(EXPORTED_EVERY_MS) })];
trace.setGlobalTracerProvider(new TracerProvider({ sampler, spanProcessors }));
