// What a provider's answer means, as data. Each provider has one table from its own codes to verdicts; what the table
// does not name is judged by the HTTP status.

import type { Category, Reply } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";

/** A reply that is no acceptance. */
export type Failed = Exclude<Reply, { kind: "accepted" }>;

export type Verdict = {
  kind: Failed["kind"];
  category: Category;
  /** How long to stay away where the provider does not say it with the answer. */
  retryAfterMs?: number;
};

export const DEAD: Verdict = { kind: "dead-recipient", category: "recipient" };
export const BAD_RECIPIENT: Verdict = { kind: "rejected", category: "recipient" };
export const BAD_CONTENT: Verdict = { kind: "rejected", category: "content" };
/** Sending again with the same credentials or the same setup of the account would fail again. */
export const BAD_CREDENTIALS: Verdict = { kind: "rejected", category: "credentials" };
export const LIMITED: Verdict = { kind: "limited", category: "throttled" };
export const AWAY: Verdict = { kind: "unavailable", category: "outage" };
/** It broke while it had the message in hand. */
export const BROKE: Verdict = { kind: "ambiguous", category: "outage" };

export function verdictOfStatus(status: number): Verdict {
  if (status === 429) return LIMITED;
  if (status === 401 || status === 403 || status === 407) return BAD_CREDENTIALS;
  // 503 says that the request was turned away; 500, 502 and 504 say nothing about how far it came.
  if (status === 503) return AWAY;
  if (status >= 500) return BROKE;
  if (status >= 400) return BAD_CONTENT;
  // A redirect is never followed, and nothing below 300 reaches here unless the provider has changed its API.
  return AWAY;
}

export type Answered = { reason: string; code?: string | undefined; retryAfterMs?: number | undefined };

export function replyOf(verdict: Verdict, { reason, code, retryAfterMs = verdict.retryAfterMs }: Answered): Failed {
  const { kind, category } = verdict;
  const failure = { reason: oneLine(reason), category, ...(code !== undefined && { code }) };
  if (kind !== "unavailable" && kind !== "limited") return { kind, ...failure };
  return { kind, ...failure, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
