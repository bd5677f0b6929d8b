// What a message says: a line for each entry. Some 20 bytes each and never 60, so that ten messages, which are one request, are below 64 KiB and cost as one.

import type { Entry } from "#queue/engine.ts";

/** Of a message. */
export const MOST_ENTRIES = 100;
/** Of a request, as SQS has it. */
export const MOST_MESSAGES = 10;

/** Who knows another form does not take this for its own. */
const FORM = "2";

export const bodyOf = (entries: readonly Entry[]): string => [FORM, ...entries.map(lineOf)].join("\n");

/** Undefined where it is none of ours. The lane is that of the queue. */
export function entriesIn(body: string, rank: number): Entry[] | undefined {
  const [form, ...lines] = body.split("\n");
  const entries = lines.map((line) => entryOf(line, rank));
  return form === FORM && entries.every((entry) => entry !== undefined) ? entries : undefined;
}

const lineOf = ({ handoff, place, tenant, pool, seq }: Entry): string =>
  [handoff, place, tenant, pool, seq].map((number) => number.toString(36)).join(" ");

const LINE = /^(?:[\da-z]{1,11} ){4}[\da-z]{1,11}$/;
/** As the database holds them. What it could not even read would stop every claim. */
const MOST = [Number.MAX_SAFE_INTEGER, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 15 - 1, Number.MAX_SAFE_INTEGER];

function entryOf(line: string, rank: number): Entry | undefined {
  if (!LINE.test(line)) return undefined;
  const numbers = line.split(" ").map((word) => Number.parseInt(word, 36));
  if (numbers.some((number, n) => number > (MOST[n] as number))) return undefined;
  const [handoff = 0, place = 0, tenant = 0, pool = 0, seq = 0] = numbers;
  return { handoff, place, seq, count: 1, rank, tenant, pool };
}
