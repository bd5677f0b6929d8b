// The look-up for hosts that a tenant gave: it finds public addresses, and others only where the operator allows them, so that
// nobody can use us to talk to our own network.
//
// A name is resolved once per connection, every address of the answer is checked, and the connection goes to the very
// addresses that were checked: an answer that changes in between changes nothing. Node does not resolve literal addresses in
// the usual notation, so these are checked before; others are brought into it here.

import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { addressRule, hostOf, parseAddress } from "./address.ts";
import { createNames, type NamesOptions, type Resolve, type Resolved } from "./names.ts";

export type LookupOptions = {
  /** Host names, addresses and CIDRs that may be reached although they are not public. */
  allow: readonly string[];
  nameServers?: NamesOptions["nameServers"];
  /** Instead of name servers and the system. */
  resolve?: Resolve;
};

/** The code of the error that a refused address ends in. */
export const REFUSED = "ADDRESS_REFUSED";

export type PublicLookup = {
  /** Look-ups that end with the signal. */
  lookupUntil(signal: AbortSignal): LookupFunction;
  /** Why a literal address is refused. Undefined for one that is allowed, and for names. */
  refusalOf(literal: string): string | undefined;
  /** A connection to a host, literal or name. Rejects with what went wrong, also when the signal aborts. */
  dial(host: string, port: number, signal: AbortSignal): Promise<Socket>;
};

export function createPublicLookup({ allow, nameServers, resolve }: LookupOptions): PublicLookup {
  const rule = addressRule(allow);
  const find = resolve ?? createNames({ isAllowed: rule.allowsHost, nameServers });

  async function checked(host: string, signal: AbortSignal): Promise<Resolved[]> {
    const name = hostOf(host);
    const family = isIP(name);
    const found = family ? [{ address: name, family }] : await find(name, signal);
    if (found.length === 0) throw new Error("the host has no address");
    if (rule.allowsHost(name)) return found;
    for (const { address } of found) {
      const refusal = rule.refusalOf(address);
      if (refusal) throw refused(refusal);
    }
    return found;
  }

  const lookupUntil =
    (signal: AbortSignal): LookupFunction =>
    (host, { all }, done) => {
      checked(host, signal).then(
        (found) => (all ? done(null, found) : done(null, found[0]?.address ?? "", found[0]?.family)),
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), []),
      );
    };
  const refusalOf = (literal: string) => (parseAddress(literal) ? rule.refusalOf(literal) : undefined);

  return {
    lookupUntil,
    refusalOf,
    dial(host, port, signal) {
      return new Promise((resolve, reject) => {
        const refusal = refusalOf(host);
        if (refusal) return reject(refused(refusal));
        const socket = connect({ host, port, lookup: lookupUntil(signal) });
        const stop = () => socket.destroy(signal.reason);
        signal.addEventListener("abort", stop, { once: true });
        socket.once("error", reject);
        socket.once("connect", () => {
          signal.removeEventListener("abort", stop);
          socket.off("error", reject);
          resolve(socket);
        });
        if (signal.aborted) stop();
      });
    },
  };
}

/** Names the rule but not the address: what a name means inside our network is nobody's business. */
export const wordsFor = (rule: string): string => `it leads to an address that is not allowed: ${rule}`;

const refused = (rule: string): Error => Object.assign(new Error(wordsFor(rule)), { code: REFUSED });
