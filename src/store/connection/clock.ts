// The database's clock, carillon.now(), as this process knows it: what is due, what has expired and when something was made is judged by
// one clock, whatever the clocks of the replicas show.
//
// Asked every few seconds, and told in between by the monotonic clock. An answer was given at some moment between question and
// arrival, which bounds how far the two clocks are apart; an estimate within the bounds stands, another is moved to the
// nearer bound. So a slow answer spoils nothing. Statements that must be exact ask carillon.now() themselves.

import { readClocks } from "#store/moved-clock.ts";
import type { Queryable } from "./database.ts";

export type Clock = {
  now(): Date;
  nowMs(): number;
  /** The database's true time, wherever its clock was moved to: for those outside who compare it with their own. */
  trueMs(): number;
  /** How far the clock was moved, in development. */
  movedMs(): number;
  /** Asks at once: it was moved. */
  look(): Promise<void>;
  /** How far this machine's own clock is ahead of the true time. */
  aheadMs(): number;
  stop(): void;
};

export type ClockOptions = {
  db: Queryable;
  /** The machine's own clock, of which nothing depends: it is compared, and told about. */
  wallClock: () => number;
  monotonic: () => number;
  /** This machine's clock went astray, or is right again. */
  onAstray: (aheadMs: number, isAstray: boolean) => void;
};

const ASK_MS = 10_000;
/** A machine's clock that is further off is worth a person's attention. */
export const ASTRAY_MS = 1_000;

/** Resolves when the time is known. */
export async function startClock({ db, wallClock, monotonic, onAstray }: ClockOptions): Promise<Clock> {
  let offsetMs = Number.NaN;
  let movedMs = 0;
  let isAstray = false;
  let isAsking = false;

  async function ask(): Promise<void> {
    const askedAt = monotonic();
    const { now, trueNow } = await readClocks(db);
    const shownMs = trueNow.getTime();
    movedMs = now.getTime() - shownMs;
    const [least, most] = [shownMs - monotonic(), shownMs + 1 - askedAt];
    offsetMs = Number.isNaN(offsetMs) ? (least + most) / 2 : Math.min(Math.max(offsetMs, least), most);
    if (Math.abs(aheadMs()) > ASTRAY_MS === isAstray) return;
    isAstray = !isAstray;
    onAstray(Math.round(aheadMs()), isAstray);
  }
  const trueMs = () => Math.floor(monotonic() + offsetMs);
  const nowMs = () => trueMs() + movedMs;
  const aheadMs = () => wallClock() - trueMs();

  // The first answer waits for a connection; the second says more.
  await ask();
  await ask();
  const asking = setInterval(() => {
    if (isAsking) return;
    isAsking = true;
    ask()
      // While the database is away, time goes on as it did.
      .catch(() => undefined)
      .finally(() => {
        isAsking = false;
      });
  }, ASK_MS);
  asking.unref();

  return {
    now: () => new Date(nowMs()),
    nowMs,
    trueMs,
    movedMs: () => movedMs,
    look: ask,
    aheadMs,
    stop: () => clearInterval(asking),
  };
}
