// An engine that does not answer holds up nobody: after a moment, what waits in PostgreSQL is claimed without it. What it gives late goes back to it, and
// until then it is not asked again.

import { type Engine, NOTHING, type Take, type TakeAsk } from "./engine.ts";

/** What Redis takes a few milliseconds for; a machine with every core busy, some more. */
const PATIENCE_MS = 250;

export function createPatience(
  engine: Engine,
  onFailed: (error: unknown) => void,
  patienceMs = PATIENCE_MS,
): Engine["take"] {
  let isLate = false;

  async function ask(asked: TakeAsk): Promise<Take> {
    try {
      return await engine.take(asked);
    } catch (error) {
      onFailed(error);
      return NOTHING;
    }
  }

  return async (asked) => {
    if (isLate) return NOTHING;
    const answer = ask(asked);
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<undefined>((giveUp) => {
      timer = setTimeout(() => giveUp(undefined), patienceMs);
    });
    const take = await Promise.race([answer, patience]);
    clearTimeout(timer);
    if (take) return take;
    isLate = true;
    answer.then(({ entries, done }) => {
      isLate = false;
      if (entries.length > 0) done(entries, []);
    });
    return NOTHING;
  };
}
