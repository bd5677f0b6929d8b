// What the supervisor and its processes say to each other.

import type { Config } from "#config/read.ts";
import type { ProcessFigures, Standing } from "#telemetry/siblings.ts";
import type { Ground } from "#wiring/ground.ts";

/** What a process needs to know before it can serve. The configuration was read once, for all of them. */
export type Begin = { number: number; config: Config; ground: Ground; standing: Standing; uptimeSeconds: number };

export type ToProcess =
  | { kind: "begin"; begin: Begin }
  | { kind: "standing"; standing: Standing }
  /** Tell me your figures. */
  | { kind: "count"; ask: number }
  /** What you asked for: the figures of all, or why there are none. */
  | { kind: "figures"; ask: number; text: string }
  | { kind: "no figures"; ask: number; fault: string }
  | { kind: "ping" }
  | { kind: "stop" };

/** Why a process could not start, in the words and with the exit code of one that serves alone. */
export type Complaint = { said: string; exitCode: number };

export type FromProcess =
  /** It listens to what it is told. */
  | { kind: "hello" }
  | { kind: "ready"; url: string }
  | { kind: "failed"; complaint: Complaint }
  | { kind: "counted"; ask: number; figures: ProcessFigures }
  | { kind: "uncounted"; ask: number; fault: string }
  | { kind: "asks"; ask: number }
  | { kind: "pong" };
