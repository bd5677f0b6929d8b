// The HTTP client for URLs that a tenant gave: webhooks, callbacks, push endpoints. It reaches public addresses, and
// others only where the operator allows them, so that nobody can use us to talk to our own network.
//
// A name is resolved once per connection, every address of the answer is checked, and the connection goes to the very
// addresses that were checked: an answer that changes in between changes nothing. The URL keeps the name, so Host and
// TLS do too. Node does not resolve literal addresses, so these are checked before. The environment's proxy variables
// mean nothing here: a proxy would resolve the name once more, and unseen.

import { lookup as resolveSystem } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import type { Reply } from "../domain/attempt.ts";
import { addressRule, parseAddress } from "./address.ts";
import { createHttp, type Http } from "./http.ts";

export type Resolved = { address: string; family: number };

export type GuardedOptions = {
  /** Host names, addresses and CIDRs that may be reached although they are not public. */
  allow: readonly string[];
  /** All addresses of a name; the system's resolver unless told otherwise. */
  resolve?: (host: string) => Promise<Resolved[]>;
};

/** For callers without a time limit of their own. */
const MAX_MS = 60_000;
/** How a refusal is known again when it comes back from the client as a failed connection. */
const REFUSED = "ADDRESS_REFUSED";
const MARK = ` (${REFUSED})`;

export type GuardedHttp = Http & {
  /** Why a URL would be refused whatever its name leads to; for telling a sender before anything is sent. */
  refusalOf(url: string): string | undefined;
};

export function createGuardedHttp(options: GuardedOptions): GuardedHttp {
  const { allow, resolve = resolveAll } = options;
  const rule = addressRule(allow);

  async function checked(host: string): Promise<Resolved[]> {
    const found = await resolve(host);
    if (found.length === 0) throw new Error("the host has no address");
    if (rule.allowsHost(host)) return found;
    for (const { address } of found) {
      const refusal = rule.refusalOf(address);
      if (refusal) throw Object.assign(new Error(wordsFor(refusal)), { code: REFUSED });
    }
    return found;
  }

  const lookup: LookupFunction = (host, { all }, done) => {
    checked(host).then(
      (found) => (all ? done(null, found) : done(null, found[0]?.address ?? "", found[0]?.family)),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), []),
    );
  };
  const http = createHttp({ lookup });

  function refusalOf(text: string): string | undefined {
    if (!URL.canParse(text)) return "the URL cannot be read";
    const { protocol, username, password, hostname } = new URL(text);
    if (protocol !== "https:" && protocol !== "http:") return "only http and https URLs are used";
    if (username || password) return "the URL holds credentials";
    // The parser has brought every notation of IPv4 (decimal, octal, hexadecimal, short) into the usual one.
    const literal = hostname.replace(/^\[|\]$/g, "");
    const refusal = parseAddress(literal) && rule.refusalOf(literal);
    return refusal && wordsFor(refusal);
  }

  return {
    async ask(request) {
      const refusal = refusalOf(request.url);
      if (refusal) return refused(refusal);
      const answer = await http.ask({ timeoutMs: MAX_MS, ...request, url: new URL(request.url).href });
      if ("kind" in answer) return wasRefused(answer) ? refused(answer.reason.replace(MARK, "")) : answer;
      if (answer.status < 300 || answer.status > 399) return answer;
      return refused(`the answer is a redirect (${answer.status}), which is not followed`, String(answer.status));
    },
    refusalOf,
    close: () => http.close(),
  };
}

/** Undefined where a URL leads nowhere. */
export function originOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { protocol, origin } = new URL(url);
  return protocol === "https:" || protocol === "http:" ? origin : undefined;
}

const wasRefused = (reply: Reply): reply is Extract<Reply, { kind: "unavailable" }> =>
  reply.kind === "unavailable" && reply.reason.endsWith(MARK);

const resolveAll = (host: string): Promise<Resolved[]> => resolveSystem(host, { all: true });

/** Names the rule but not the address: what a name means inside our network is nobody's business. */
const wordsFor = (rule: string): string => `the URL leads to an address that is not allowed: ${rule}`;

const refused = (reason: string, code?: string): Reply => ({
  kind: "rejected",
  reason,
  category: "recipient",
  ...(code && { code }),
});
