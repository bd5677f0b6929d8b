// The look-up for hosts that a tenant gave: it finds public addresses, and others only where the operator allows them, so that
// nobody can use us to talk to our own network.
//
// A name is resolved once per connection, every address of the answer is checked, and the connection goes to the very
// addresses that were checked: an answer that changes in between changes nothing. Node does not resolve literal addresses, so
// these are checked before.

import { lookup as resolveSystem } from "node:dns/promises";
import { connect, type LookupFunction, type Socket } from "node:net";
import { addressRule, parseAddress } from "./address.ts";

export type Resolved = { address: string; family: number };

export type LookupOptions = {
  /** Host names, addresses and CIDRs that may be reached although they are not public. */
  allow: readonly string[];
  /** All addresses of a name; the system's resolver unless told otherwise. */
  resolve?: (host: string) => Promise<Resolved[]>;
};

/** The code of the error that a refused address ends in. */
export const REFUSED = "ADDRESS_REFUSED";

export type GuardedLookup = {
  lookup: LookupFunction;
  /** Why a literal address is refused. Undefined for one that is allowed, and for names. */
  refusalOf(literal: string): string | undefined;
  /** A connection to a host, literal or name. Rejects with what went wrong, also when the signal aborts. */
  dial(host: string, port: number, signal: AbortSignal): Promise<Socket>;
};

export function createGuardedLookup({ allow, resolve = resolveAll }: LookupOptions): GuardedLookup {
  const rule = addressRule(allow);

  async function checked(host: string): Promise<Resolved[]> {
    const found = await resolve(host);
    if (found.length === 0) throw new Error("the host has no address");
    if (rule.allowsHost(host)) return found;
    for (const { address } of found) {
      const refusal = rule.refusalOf(address);
      if (refusal) throw refused(refusal);
    }
    return found;
  }

  const lookup: LookupFunction = (host, { all }, done) => {
    checked(host).then(
      (found) => (all ? done(null, found) : done(null, found[0]?.address ?? "", found[0]?.family)),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), []),
    );
  };
  const refusalOf = (literal: string) => (parseAddress(literal) ? rule.refusalOf(literal) : undefined);

  return {
    lookup,
    refusalOf,
    dial(host, port, signal) {
      return new Promise((resolve, reject) => {
        const refusal = refusalOf(host);
        if (refusal) return reject(refused(refusal));
        const socket = connect({ host, port, lookup });
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

const resolveAll = (host: string): Promise<Resolved[]> => resolveSystem(host, { all: true });

/** Names the rule but not the address: what a name means inside our network is nobody's business. */
export const wordsFor = (rule: string): string => `it leads to an address that is not allowed: ${rule}`;

const refused = (rule: string): Error => Object.assign(new Error(wordsFor(rule)), { code: REFUSED });
