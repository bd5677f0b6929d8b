// The HTTP client for URLs that a tenant gave: webhooks, callbacks, push endpoints. It connects to public addresses only. The
// URL keeps the name, so Host and TLS do too. The environment's proxy variables mean nothing here: a proxy would resolve the name
// once more, and unseen.

import { setImmediate as nextTurn } from "node:timers/promises";
import { createHttp, type Http } from "./http.ts";
import { createPublicLookup, type LookupOptions, REFUSED, wordsFor } from "./public-lookup.ts";
import type { Failed } from "./verdict.ts";

/** Tenants name as many hosts as they like, and each would keep a connection for as long. */
const KEEP_ALIVE_MS = 5_000;
/** For callers without a time limit of their own. */
const MAX_MS = 60_000;
/** How a refusal is known again when it comes back from the client as a failed connection. */
const MARK = ` (${REFUSED})`;

export type PublicHttp = Http & {
  /** Why a URL would be refused whatever its name leads to; for telling a sender before anything is sent. */
  refusalOf(url: string): string | undefined;
};

export function createPublicHttp(options: LookupOptions): PublicHttp {
  const { lookupUntil, refusalOf: refusalOfAddress } = createPublicLookup(options);
  const ending = new AbortController();
  const http = createHttp({ lookup: lookupUntil(ending.signal), keepAliveMs: KEEP_ALIVE_MS });

  const refusalOf = (text: string): string | undefined => refusalOfUrl(URL.parse(text));

  function refusalOfUrl(url: URL | null): string | undefined {
    if (!url) return "the URL cannot be read";
    const { protocol, username, password, hostname } = url;
    if (protocol !== "https:" && protocol !== "http:") return "only http and https URLs are used";
    if (username || password) return "the URL holds credentials";
    // The parser has brought every notation of IPv4 (decimal, octal, hexadecimal, short) into the usual one.
    const refusal = refusalOfAddress(hostname.replace(/^\[|\]$/g, ""));
    return refusal && wordsFor(refusal);
  }

  return {
    async ask(request) {
      const url = typeof request.url === "string" ? URL.parse(request.url) : request.url;
      const refusal = refusalOfUrl(url);
      if (!url || refusal) return refused(refusal ?? "");
      const answer = await http.ask({ timeoutMs: MAX_MS, ...request, url });
      // undici uses a connection again only in the next turn of the event loop. Who went on at once would open another: half as many more
      // than there are requests at a time.
      await nextTurn();
      if ("kind" in answer) return wasRefused(answer) ? refused(answer.reason.replace(MARK, "")) : answer;
      if (answer.status < 300 || answer.status > 399) return answer;
      return refused(`the answer is a redirect (${answer.status}), which is not followed`, String(answer.status));
    },
    refusalOf,
    close() {
      ending.abort();
      return http.close();
    },
  };
}

/** Undefined where a URL leads nowhere. */
export function originOf(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text);
  if (!url) return undefined;
  const { protocol, origin } = url;
  return protocol === "https:" || protocol === "http:" ? origin : undefined;
}

const wasRefused = (reply: Failed): reply is Extract<Failed, { kind: "unavailable" }> =>
  reply.kind === "unavailable" && reply.reason.endsWith(MARK);

const refused = (reason: string, code?: string): Failed => ({
  kind: "rejected",
  reason,
  category: "recipient",
  ...(code && { code }),
});
