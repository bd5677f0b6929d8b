// Names that types had before they were written from the schemas, and a few that say in one word what several schemas have in common.

import type {
  AuditQuery,
  CallbackDeadLettersListQuery,
  DeadLettersListQuery,
  DevMessagesListQuery,
  EndpointRequest,
  EndpointsDeliveriesQuery,
  ListQuery,
  Plan,
  RefusalsListQuery,
  SinkState,
  SourceState,
  Status,
} from "./generated.ts";

export type ListFilters = ListQuery;
export type AuditFilters = AuditQuery;
export type RefusalFilters = RefusalsListQuery;
export type DeliveryFilter = EndpointsDeliveriesQuery;
export type DeadCallbackFilter = Omit<CallbackDeadLettersListQuery, "limit" | "cursor">;
export type PageOptions = { limit?: number; cursor?: string };
export type Ending = Exclude<Status, "pending" | "queued" | "processing">;
export type CallbackPolicy = NonNullable<EndpointRequest["policy"]>;
export type ConnectorKind = "source" | "sink";
export type Connector = SourceState | SinkState;
export type PausedKind = "channel" | "provider" | "tenant";
export type DeadLetterFilters = DeadLettersListQuery;
export type PlanKind = Plan["kind"];
export type PlanState = Plan["state"];
export type KeptFilters = Omit<DevMessagesListQuery, "wait">;
