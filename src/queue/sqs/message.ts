// What a message says: a line for each entry. Some 50 bytes each and never 80, so that ten messages, which are one request, are below 64 KiB and cost as one.

import type { Entry } from "#queue/engine.ts";

/** Of a message. */
export const MOST_ENTRIES = 100;
/** Of a request, as SQS has it. */
export const MOST_MESSAGES = 10;

/** Who knows another form does not take this for its own. */
const FORM = "1";

export const bodyOf = (entries: readonly Entry[]): string => [FORM, ...entries.map(lineOf)].join("\n");

/** Undefined where it is none of ours. The lane is that of the queue. */
export function entriesIn(body: string, rank: number): Entry[] | undefined {
  const [form, ...lines] = body.split("\n");
  const entries = lines.map((line) => entryOf(line, rank));
  return form === FORM && entries.every((entry) => entry !== undefined) ? entries : undefined;
}

function lineOf({ handoff, place, tenant, pool, seq, expiresAtMs, id }: Entry): string {
  const numbers = [handoff, place, tenant, pool, seq].map((number) => number.toString(36));
  const packed = Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url");
  return [...numbers, expiresAtMs?.toString(36) ?? "-", packed].join(" ");
}

const LINE = /^(?:[\da-z]{1,11} ){5}(?:-|[\da-z]{1,11}) [\w-]{22}$/;
/** As the database holds them. What it could not even read would stop every claim. */
const MOST = [Number.MAX_SAFE_INTEGER, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 15 - 1, Number.MAX_SAFE_INTEGER, 8.64e15];

function entryOf(line: string, rank: number): Entry | undefined {
  if (!LINE.test(line)) return undefined;
  const words = line.split(" ");
  const hex = Buffer.from(words.pop() ?? "", "base64url").toString("hex");
  const numbers = words.map((word) => Number.parseInt(word, 36));
  if (numbers.some((number, n) => number > (MOST[n] as number))) return undefined;
  const [handoff = 0, place = 0, tenant = 0, pool = 0, seq = 0, expiry = Number.NaN] = numbers;
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  const expiresAtMs = Number.isNaN(expiry) ? undefined : expiry;
  return { handoff, place, rank, tenant, pool, seq, id, expiresAtMs };
}
