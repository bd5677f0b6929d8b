// Keeps Redis in step with what was handed to it: after a crash between a commit and its offer, after a taker that died, after Redis forgot.
//
// While Redis runs on, what it was not offered is recent, or somebody's commit took its time: the newest handoffs are looked at each time, the others in
// rounds. A Redis that was begun anew, emptied or promoted gives nothing until all that is open was looked at, so that order holds; then it is opened.

import { randomUUID } from "node:crypto";
import type { Handoff } from "#domain/handoff.ts";
import type { Engine } from "#queue/engine.ts";
import { bringHome, firstNumber, newestNumbers, numbersAfter, readHandoffs } from "#queue/postgres/handoffs.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Redis, Script } from "#wire/redis.ts";
import { LOOK, MISSING, OPEN, RESTORE, TRIM } from "./scripts.ts";

const MOST_TAKES = 100;

/** Redis does not answer: that is told elsewhere, and it is tried again soon. */
class Away extends Error {}

export function createTend(redis: Redis, keys: readonly string[], offer: Engine["offer"]): Engine["tend"] {
  let lookedAt = 0;
  const run = (script: Script, args: readonly (string | number)[]) =>
    redis.run(script, keys, args).catch((cause: unknown) => {
      throw new Away("Redis is away", { cause });
    });

  const missingOf = async (numbers: readonly number[]) => ((await run(MISSING, numbers)) as string[]).map(Number);

  /** Offers those of them that Redis does not know; answers with how many notifications that were. */
  async function offerMissing(db: Queryable, missing: readonly number[]): Promise<number> {
    if (missing.length === 0) return 0;
    const handoffs = await readHandoffs(db, missing);
    const refused = await offer(handoffs).catch((cause: unknown) => {
      throw new Away("Redis is away", { cause });
    });
    await bringHome(db, refused);
    return handoffs.reduce((sum, { size }: Handoff) => sum + size, 0);
  }

  async function* tend(db: Queryable, size: number): AsyncGenerator<number> {
    while (Number(await run(RESTORE, [MOST_TAKES])) === MOST_TAKES) yield 0;
    const look = randomUUID();
    if (Number(await run(LOOK, [look])) === 0) {
      for (let after = 0; ; ) {
        const numbers = await numbersAfter(db, "redis", after, size);
        yield await offerMissing(db, await missingOf(numbers));
        if (numbers.length < size) break;
        after = numbers.at(-1) as number;
      }
      // If it was begun anew or emptied meanwhile, once more from the start.
      await run(OPEN, [look]);
      return;
    }
    const newest = await newestNumbers(db, "redis", size);
    yield await offerMissing(db, await missingOf(newest));
    const next = await numbersAfter(db, "redis", lookedAt, size);
    yield await offerMissing(db, await missingOf(next));
    lookedAt = next.length < size ? 0 : (next.at(-1) as number);
    if (lookedAt === 0) await run(TRIM, [await firstNumber(db, "redis")]);
  }

  return async function* (db, size) {
    try {
      yield* tend(db, size);
    } catch (error) {
      if (!(error instanceof Away)) throw error;
    }
  };
}
