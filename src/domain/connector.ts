// Sources and sinks, as they are named and how they stand.

export const CONNECTOR_KINDS = ["source", "sink"] as const;
export type ConnectorKind = (typeof CONNECTOR_KINDS)[number];

/** `idle`: no process runs it. */
export const CONNECTOR_STATES = ["running", "paused", "failing", "idle"] as const;
export type ConnectorState = (typeof CONNECTOR_STATES)[number];

/** What failed last counts until it succeeds, also while nobody tries it. */
export function connectorState(standing: {
  pausedAt: Date | null;
  error: string | null;
  isRun: boolean;
}): ConnectorState {
  if (standing.pausedAt) return "paused";
  if (standing.error !== null) return "failing";
  return standing.isRun ? "running" : "idle";
}
