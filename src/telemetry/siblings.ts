// The processes behind one port, as one of them sees them. A process that serves alone has none.

import type { Registry } from "prom-client";

/** The figures of a process, as they travel to whoever puts them together. */
export type ProcessFigures = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** How many there are to be, and how many of them serve. */
export type Standing = { of: number; up: number };

export type Siblings = {
  /** Which of them this is, from 1. */
  number: number;
  standing(): Standing;
  /** Of all of them together, as Prometheus reads them. */
  figures(): Promise<string>;
  /** What this one contributes when somebody asks. */
  contribute(read: () => Promise<ProcessFigures>): void;
  /** Since the first of them was started. */
  uptimeSeconds(): number;
};
