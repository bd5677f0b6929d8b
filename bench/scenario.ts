// What a scenario is: parts, each a set of cases that are comparable with one another.
//
// A case says how to get ready, how to measure and how to clean up; measure.ts decides how often and
// in which order, so that no scenario has a loop of its own and all of them share noise alike.

export type World = {
  databaseUrl: string;
  /** Undefined when no Redis could be had: what needs it is left out. */
  redisUrl: string | undefined;
  /** Processes of ours that run throughout, by the name that the CPU account gives them. */
  servers: Readonly<Record<string, number>>;
  /** Where profiles go, when they were asked for. */
  profileDirectory: string | undefined;
  /** Asked for with MANY=1: cases that take many minutes. */
  withMany: boolean;
};

/** By name, e.g. perSecond or p99Ms. */
export type Figures = Readonly<Record<string, number>>;

export type Prepared = {
  /** Process ids of what was started for this run alone, by name. */
  processes?: Readonly<Record<string, number>>;
  measure(): Promise<Figures>;
  /** Checks that everything arrived, and leaves nothing behind. */
  finish(): Promise<void>;
};

export type Case = {
  /** Cases of one variant are compared: "50 in flight". */
  variant: string;
  subject: string;
  /** The settings that matter, for the record. */
  settings: string;
  /** In the first round only: it takes too long for more. */
  isOnce?: boolean;
  /** The store emptied and filled again as needed, everything warmed up. */
  prepare(): Promise<Prepared>;
};

/** What `subject` has to reach: a multiple of `against`, or figures that are low enough; where several are given, either. */
export type Target = {
  variant: string;
  subject: string;
  /** Another subject of the same variant. */
  against?: string;
  /** What the multiple is of; the part's own unless given. */
  figure?: string;
  atLeast?: number;
  atMost?: number;
  /** The most that each of these figures may be. */
  limits?: Figures;
  /** The most that the figure may be above that of the same subject in another variant: its floor. */
  above?: { variant: string; atMost: number };
};

export type Part = {
  title: string;
  /** The figure that medians, ratios and targets are about. */
  figure: { name: string; unit: string };
  cases(world: World): Case[];
  targets: readonly Target[];
};

export type Scenario = {
  summary: string;
  parts: Readonly<Record<string, Part>>;
  /** Puts the results that are kept into the documentation; answers with the files it wrote. */
  publish?(): string[];
};
