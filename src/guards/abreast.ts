// How many messages are under way at a time to one server, and the line of those who wait for a place.
//
// Whoever is let through leaves at once: nothing waits on the wire, where its time would run and nobody could tell whether it had
// left. A short wait is spent here; who would wait longer is told when to come back, an instant of its own, by the pace at which
// answers come: so a slow server keeps few of a worker's slots. State: how many are under way, the line, the pace.

import type { Turn } from "./guard.ts";

export type Abreast = {
  /** Takes a place, if one is free. */
  enter(): boolean;
  /** True with a place; else how long to stay away. */
  wait(turn: Turn): Promise<true | number>;
  /** Once for every place taken. */
  leave(): void;
  underWay(): number;
};

/** Who would wait for longer than this comes back later. */
const PATIENCE_MS = 2_000;
/** Who was wrong about that waits no longer than this. */
const MOST_WAIT_MS = 4_000;
const MOST_AWAY_MS = 60_000;
/** The pace is a mean over about this many answers. */
const ANSWERS = 16;

export function createAbreast(most: number, now: () => number): Abreast {
  const line = new Set<() => void>();
  let underWay = 0;
  /** Between two answers while all places are taken. */
  let everyMs = 0;
  let answeredAt = 0;
  /** Of those who were sent away: when the last of them comes back, the newest and the most urgent of them. */
  let awayUntil = 0;
  let awaySeq = 0;
  let awayRank = 0;

  /** A server that has fallen silent has no pace: then what it has been silent for counts. */
  const pace = () => Math.max(everyMs, (now() - answeredAt) / most);

  function sendAway({ seq, rank }: Turn): number {
    const at = now();
    const isFirst = awayUntil <= at;
    awayUntil = Math.min(at + MOST_AWAY_MS, Math.max(awayUntil, at + line.size * pace()) + pace());
    awaySeq = isFirst ? seq : Math.max(awaySeq, seq);
    awayRank = isFirst ? rank : Math.min(awayRank, rank);
    return awayUntil - at;
  }

  /** Behind those who were sent away before: newer, and no more urgent. */
  const isBehind = ({ seq, rank }: Turn) => awayUntil > now() + PATIENCE_MS && seq > awaySeq && rank >= awayRank;

  return {
    enter() {
      if (underWay >= most) return false;
      underWay++;
      if (underWay === most) answeredAt = now();
      return true;
    },
    wait(turn) {
      if (line.size * pace() > PATIENCE_MS || isBehind(turn)) return Promise.resolve(sendAway(turn));
      return new Promise((resolve) => {
        const take = () => {
          clearTimeout(giveUp);
          line.delete(take);
          resolve(true);
        };
        const giveUp = setTimeout(() => {
          line.delete(take);
          resolve(sendAway(turn));
        }, MOST_WAIT_MS);
        line.add(take);
      });
    },
    leave() {
      if (underWay >= most) {
        const at = now();
        everyMs += (at - answeredAt - everyMs) / ANSWERS;
        answeredAt = at;
      }
      const [next] = line;
      if (next) next();
      else underWay--;
    },
    underWay: () => underWay,
  };
}
