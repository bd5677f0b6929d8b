// What a provider or a receiver answered, within what a timer, a timestamp and a row can hold. Every reply passes here once, where
// it enters the walk; what cannot be meant is left out.

import type { Reply } from "./attempt.ts";
import { cut, storable } from "./text.ts";

const DAY_MS = 86_400_000;
const MOST_REASON = 1_000;
const MOST_CODE = 100;
const MOST_ANSWER = 1_024;
/** A cut one would name nothing, or another message; and no index holds one without end. */
const MOST_NAME = 512;
/** US dollars for one message. */
const MOST_COST = 1_000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
const CONTROLS = /[\u0000-\u001f\u007f]+/;
const ALL_CONTROLS = new RegExp(CONTROLS, "g");

/** Words as they may stand in a record: one line, not too long, and no half of a character at the end. */
export function oneLine(text: string, most = 300): string {
  const line = text.replace(ALL_CONTROLS, " ").trim();
  return (line.length > most ? `${cut(line, most - 1)}…` : line).toWellFormed();
}

/** What is kept of a receiver's answer, for those who look why it was one: the first thousand characters, as they are. */
export const beginningOf = (answer: string): string => storable(cut(answer, MOST_ANSWER));

/** How long somebody asks us to wait: never for longer than a day. Undefined where it is no time to come. */
export function waitMsOf(ms: number | undefined): number | undefined {
  return ms !== undefined && ms > 0 ? Math.min(Math.round(ms), DAY_MS) : undefined;
}

export function boundedReply(reply: Reply): Reply {
  if (reply.kind === "accepted") {
    const { receipt, cost, answer } = reply;
    if (receipt === undefined && cost === undefined) return reply;
    const isCost = cost !== undefined && cost >= 0 && cost <= MOST_COST;
    return {
      kind: "accepted",
      ...(isName(receipt) && { receipt }),
      ...(isCost && { cost }),
      ...(answer && { answer }),
    };
  }
  const { reason, code, ...rest } = reply;
  const words = { reason: oneLine(reason, MOST_REASON), ...(code !== undefined && { code: oneLine(code, MOST_CODE) }) };
  if (!("retryAfterMs" in rest)) return { ...rest, ...words };
  const { retryAfterMs, ...others } = rest;
  const waitMs = waitMsOf(retryAfterMs);
  return { ...others, ...words, ...(waitMs !== undefined && { retryAfterMs: waitMs }) };
}

const isName = (text: string | undefined): text is string =>
  text !== undefined && text !== "" && text.length <= MOST_NAME && !CONTROLS.test(text) && text.isWellFormed();
