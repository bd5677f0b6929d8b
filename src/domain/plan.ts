// A plan for dead letters: what is to be done with which of them, looked over before it is done.
//
//   counting ──► ready ──► applying ⇄ waiting (for a word, or for its canaries)
//                            └──► done          from every open state: aborted; lapsed, where nobody came back to it

/** Of those that are looked over. */
export const REVIEWED_KINDS = ["requeue", "purge"] as const;
/** And of those that are carried out at once, by whoever asks for it: notifications sent again, and callbacks. Nothing is left out that can be sent. */
export const PLAN_KINDS = [...REVIEWED_KINDS, "retry", "callback-retry"] as const;
export type PlanKind = (typeof PLAN_KINDS)[number];
export const isAtOnce = (kind: PlanKind): boolean => kind === "retry" || kind === "callback-retry";

/** In the record, callbacks are of their tenant's number with a minus. */
export const recordTenantOf = ({ tenant, kind }: { tenant: number; kind: PlanKind }): number =>
  kind === "callback-retry" ? -tenant : tenant;

export const OPEN_STATES = ["counting", "ready", "applying", "waiting"] as const;
export const PLAN_STATES = [...OPEN_STATES, "done", "aborted", "lapsed"] as const;
export type PlanState = (typeof PLAN_STATES)[number];

/** Why something is left out of a plan, or passed over when its turn has come. */
export const REASONS = [
  /** There is none of that id, or retention has taken it. */
  "gone",
  /** It waits to be sent, or is being sent. */
  "waiting",
  /** It was sent since, or may have been. */
  "sent",
  /** It ended otherwise: cancelled, expired, suppressed. */
  "ended",
  /** It was taken off the list before. */
  "purged",
  /** It was sent again since, and has failed again. */
  "changed",
  /** It was brought back from the archive, to be read. */
  "restored",
  /** Its user was forgotten. */
  "forgotten",
  /** Its `expiresAt` has passed. */
  "expired",
  /** A later one with the same template was sent to the same user. */
  "reached",
  /** Nothing more is sent to its address. */
  "suppressed",
] as const;
export type Reason = (typeof REASONS)[number];
export type Tally = { [reason in Reason]?: number };

/** These say that it should not be sent; whoever insists on it can have it sent, but for what was forgotten, and it can be taken off the list. */
const AGAINST_SENDING: ReadonlySet<Reason> = new Set(["expired", "reached", "suppressed"]);

export function reasonFor(kind: PlanKind, reason: Reason | null): Reason | null {
  if (kind === "requeue" || reason === null) return reason;
  return AGAINST_SENDING.has(reason) || (kind === "purge" && reason === "forgotten") ? null : reason;
}

export function addTo(tally: Tally, reasons: readonly Reason[]): Tally {
  const sum = { ...tally };
  for (const reason of reasons) sum[reason] = (sum[reason] ?? 0) + 1;
  return sum;
}

export const totalOf = (tally: Tally): number => Object.values(tally).reduce((sum, n) => sum + n, 0);

export const MOST_A_SECOND = 1_000;
/** Turns of an applying plan in a second: an abort waits for no more than one of them. */
const TURNS_A_SECOND = 4;

/** How many go at once, and how long it is until the next: never more than the rate, in however long a stretch. */
export function turnOf(rate: number, left: number): { count: number; waitMs: number } {
  const count = Math.min(Math.ceil(rate / TURNS_A_SECOND), left);
  return { count, waitMs: (count / rate) * 1000 };
}

/** In US dollars, by provider and by `channel:<name>`. */
export type Prices = { [what: string]: number };

/** Undefined where nobody knows. */
export const priceOf = (prices: Prices, channel: string, provider: string | null): number | undefined =>
  (provider === null ? undefined : prices[provider]) ?? prices[`channel:${channel}`];
