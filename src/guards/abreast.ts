// How many messages are under way at a time to one server, and the lines of those who wait for a place inside a send: with another
// device, another provider, or a text that was filled meanwhile. (Who has not begun waits in the worker's hand: passage.ts.)
//
// Whoever is let through leaves at once: nothing waits on the wire, where its time would run and nobody could tell whether it had
// left. A few places are kept for urgent and high ones. State: how many are under way, and the lines.

import { isHigh } from "#domain/priority.ts";
import { Away, MOST_WAIT_MS } from "./away.ts";
import type { Turn } from "./guard.ts";

export type Abreast = {
  /** Takes a place, if one is free. */
  enter(turn: Turn): boolean;
  /** True with a place; else how long to stay away. */
  wait(turn: Turn): Promise<true | number>;
  /** Once for every place taken. */
  leave(): void;
  underWay(): number;
};

/** Of so many places, those that only urgent and high ones may take. */
export const keptOf = (most: number): number =>
  most < LEAST_KEPT_OF || most === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.floor(most / 8));
const LEAST_KEPT_OF = 4;

export function createAbreast(most: number, now: () => number): Abreast {
  const others = most - keptOf(most);
  const lines = { high: new Set<() => void>(), others: new Set<() => void>() };
  const away = new Away(now);
  let underWay = 0;
  const waiting = () => lines.high.size + lines.others.size;

  return {
    enter({ rank }) {
      if (underWay >= (isHigh(rank) ? most : others)) return false;
      underWay++;
      if (underWay === others) away.filled();
      return true;
    },
    wait(turn) {
      if (away.isTooLong(turn, waiting(), others)) return Promise.resolve(away.send(turn, waiting(), others));
      const line = isHigh(turn.rank) ? lines.high : lines.others;
      return new Promise((resolve) => {
        const take = () => {
          clearTimeout(giveUp);
          line.delete(take);
          resolve(true);
        };
        const giveUp = setTimeout(() => {
          line.delete(take);
          resolve(away.send(turn, waiting(), others));
        }, MOST_WAIT_MS);
        line.add(take);
      });
    },
    leave() {
      if (underWay >= others) away.answered();
      underWay--;
      const [next] = lines.high.size > 0 || underWay >= others ? lines.high : lines.others;
      if (!next) return;
      underWay++;
      next();
    },
    underWay: () => underWay,
  };
}
