// A circuit breaker: stops asking a provider that does not answer, and finds out carefully when it is back.
//
// Closed: all pass. It opens after so many failures in a row, or when too large a share of a sliding window failed.
// Open: nobody passes until a time that doubles with each opening. Half-open: a few probes at once; each success lets a few
// more through, enough of them close it, one failure opens it again. What began before the last change of state no longer
// counts: a hundred timeouts of the outage that is over must not start the next.
//
// A closed breaker costs a counter per send and keeps no object. State: where it stands, the window, the probes under way.

export type BreakerSettings = {
  /** So many failures in a row open it. */
  failuresInRow: number;
  /** Or this share of at least `minVolume` answers within the window. */
  failureShare: number;
  minVolume: number;
  windowMs: number;
  firstOpenMs: number;
  maxOpenMs: number;
  /** Probes at once grow from 1 by this factor with each success, up to a cap. */
  probeGrowth: number;
  maxProbes: number;
  successesToClose: number;
};

export const DEFAULT_BREAKER: BreakerSettings = {
  // Before that retries are the better answer: so few failures cost their notifications an attempt or two of dozens.
  failuresInRow: 20,
  failureShare: 0.5,
  minVolume: 40,
  windowMs: 10_000,
  firstOpenMs: 1_000,
  maxOpenMs: 60_000,
  probeGrowth: 1.5,
  maxProbes: 10,
  successesToClose: 5,
};

export type BreakerState = "closed" | "half-open" | "open";

/** What others may know of it. `untilMs` is how long it stays open from now. */
export type BreakerView = { state: BreakerState; openMs: number; openings: number };

export type Breaker = {
  /** A ticket to report with, or -1: not now. */
  admit(): number;
  /** How long until it may let somebody through. */
  waitMs(): number;
  /** Since it was last closed. */
  silentMs(): number;
  succeed(ticket: number): void;
  fail(ticket: number): void;
  /** Neither: it was not asked after all, or its answer says nothing about its health. */
  release(ticket: number): void;
  view(): BreakerView;
  /** What another process found out. A closed one opens, one that is open closes; anything else it finds out itself. */
  adopt(view: BreakerView): void;
};

const BUCKETS = 10;

export function createBreaker(options: {
  now: () => number;
  settings?: BreakerSettings;
  /** Called at every change that this process found out itself. */
  onChange?: (view: BreakerView) => void;
}): Breaker {
  const { now, settings = DEFAULT_BREAKER, onChange } = options;
  const { minVolume, failureShare, failuresInRow } = settings;
  const lately = createTally(now, settings.windowMs);
  let state: BreakerState = "closed";
  /** Tickets of an earlier era count no more. */
  let era = 0;
  let inRow = 0;
  let openUntil = 0;
  let closedUntil = 0;
  /** Since it was last closed for good. */
  let openings = 0;
  let probing = 0;
  let probes = 1;
  let successes = 0;

  const view = (): BreakerView => ({ state, openMs: Math.max(0, openUntil - now()), openings });

  function enter(next: BreakerState, isOwn: boolean): void {
    if (state === "closed") closedUntil = now();
    state = next;
    era++;
    inRow = probing = successes = 0;
    probes = 1;
    lately.clear();
    if (isOwn) onChange?.(view());
  }

  function open(): void {
    openUntil = now() + Math.min(settings.maxOpenMs, settings.firstOpenMs * 2 ** openings);
    openings++;
    enter("open", true);
  }

  function isTooBad(): boolean {
    if (inRow >= failuresInRow) return true;
    const { good, bad } = lately.sums();
    return good + bad >= minVolume && bad >= (good + bad) * failureShare;
  }

  return {
    admit() {
      if (state === "closed") return era;
      if (state === "open") {
        if (now() < openUntil) return -1;
        enter("half-open", true);
      }
      if (probing >= Math.floor(probes)) return -1;
      probing++;
      return era;
    },
    waitMs: () => (state === "open" ? Math.max(0, openUntil - now()) : 0),
    silentMs: () => (state === "closed" ? 0 : now() - closedUntil),
    succeed(ticket) {
      if (ticket !== era) return;
      if (state === "closed") {
        inRow = 0;
        lately.addGood();
        return;
      }
      probing--;
      successes++;
      probes = Math.min(settings.maxProbes, probes * settings.probeGrowth);
      if (successes < settings.successesToClose) return;
      openings = 0;
      enter("closed", true);
    },
    fail(ticket) {
      if (ticket !== era) return;
      if (state === "half-open") return open();
      inRow++;
      lately.addBad();
      if (isTooBad()) open();
    },
    release(ticket) {
      if (ticket === era && state === "half-open") probing--;
    },
    view,
    adopt(other) {
      if (other.state === "open" && other.openMs > 0 && state === "closed") {
        openUntil = now() + Math.min(settings.maxOpenMs, other.openMs);
        openings = Math.max(openings, other.openings);
        enter("open", false);
      } else if (other.state === "closed" && state === "open") {
        openings = 0;
        enter("closed", false);
      }
    },
  };
}

/** How it went in the last `windowMs`, in buckets that are forgotten one by one. */
function createTally(now: () => number, windowMs: number) {
  const bucketMs = windowMs / BUCKETS;
  const good = new Float64Array(BUCKETS);
  const bad = new Float64Array(BUCKETS);
  let bucket = Math.floor(now() / bucketMs);

  function addTo(counts: Float64Array): void {
    const current = Math.floor(now() / bucketMs);
    for (let n = Math.max(bucket + 1, current - BUCKETS + 1); n <= current; n++)
      good[n % BUCKETS] = bad[n % BUCKETS] = 0;
    bucket = Math.max(bucket, current);
    const at = bucket % BUCKETS;
    counts[at] = (counts[at] as number) + 1;
  }
  const sumOf = (counts: Float64Array) => counts.reduce((sum, count) => sum + count, 0);

  return {
    addGood: () => addTo(good),
    addBad: () => addTo(bad),
    sums: () => ({ good: sumOf(good), bad: sumOf(bad) }),
    clear() {
      good.fill(0);
      bad.fill(0);
    },
  };
}
