// What a change needs: the word that its dry run gave. It is a signature over the tool, what it was given and what was seen, by the caller's own
// key, so that no process has to remember it, and neither another key nor other arguments can use it. It is good for ten minutes.

import { createHmac, timingSafeEqual } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

export const GOOD_FOR_MS = 10 * 60_000;

export type Meant = { tool: string; given: unknown; seen: unknown };
type Signing = { secret: string; nowMs: number };

export function confirmationOf(meant: Meant, { secret, nowMs }: Signing): string {
  const payload = Buffer.from(JSON.stringify({ ...meant, until: nowMs + GOOD_FOR_MS })).toString("base64url");
  return `${payload}.${signature(payload, secret)}`;
}

/** What was seen; or nothing, where it is not the word for this. */
export function readConfirmation(word: string, { tool, given }: Omit<Meant, "seen">, { secret, nowMs }: Signing) {
  const [payload = "", signed = ""] = word.split(".");
  const right = Buffer.from(signature(payload, secret));
  const told = Buffer.from(signed);
  if (right.length !== told.length || !timingSafeEqual(right, told)) return undefined;
  const meant = JSON.parse(Buffer.from(payload, "base64url").toString()) as Meant & { until: number };
  const isSame = meant.tool === tool && isDeepStrictEqual(meant.given, given);
  return isSame && meant.until > nowMs ? { seen: meant.seen as { [field: string]: unknown }, once: signed } : undefined;
}

const signature = (payload: string, secret: string): string =>
  createHmac("sha256", secret).update(`carillon-mcp:${payload}`).digest("base64url");
