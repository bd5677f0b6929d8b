// What the names that tenants give lead to.
//
// The system's resolver (getaddrinfo) holds a thread for as long as a name's server is silent, and the whole process has two threads for
// look-ups: eight silent names kept everybody's, the database's included, waiting for 40 s. So tenants' names are asked for over
// sockets, by c-ares. That one knows neither /etc/hosts nor search domains: what the operator has allowed by name stays with the
// system, and so do names without a dot, for which no tenant has a server.

import { lookup, Resolver } from "node:dns/promises";

export type Resolved = { address: string; family: number };
/** Addresses of a name. Rejects when there are none, and when the signal aborts. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<Resolved[]>;

export type NamesOptions = {
  /** Whether the operator has allowed the name. */
  isAllowed(name: string): boolean;
  /** As address:port; the system's unless told otherwise. */
  nameServers?: readonly string[] | undefined;
};

/** Less than a connection has, so that the reason is the right one. */
export const MOST_MS = 8_000;
const TRY_MS = 2_000;
const TRIES = 2;
/** Of each kind. A name may have thousands, and to check them takes the main thread 40 ms; what is left out is not connected to. */
const MOST_ADDRESSES = 16;

export function createNames({ isAllowed, nameServers }: NamesOptions): Resolve {
  return (name, signal) => {
    if (isAllowed(name)) return askSystem(name);
    return name.includes(".") ? askServers(name, signal, nameServers) : askSystemInLine(name, signal);
  };
}

const askSystem = (name: string): Promise<Resolved[]> => lookup(name, { all: true });

/** One at a time in the whole process, so that tenants take one of the two threads at most. */
let line: Promise<unknown> = Promise.resolve();

function askSystemInLine(name: string, signal: AbortSignal): Promise<Resolved[]> {
  const lateAt = performance.now() + MOST_MS;
  const found = line.then(() => {
    signal.throwIfAborted();
    if (performance.now() > lateAt) throw unresolved({ code: "ETIMEOUT" });
    return askSystem(name);
  });
  line = found.catch(() => undefined);
  return found;
}

/** A resolver for each look-up: it can be cancelled alone, asks from a port of its own, and has read /etc/resolv.conf just now. */
async function askServers(
  name: string,
  signal: AbortSignal,
  nameServers: readonly string[] | undefined,
): Promise<Resolved[]> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  if (nameServers) resolver.setServers(nameServers);
  const cancel = () => resolver.cancel();
  const late = setTimeout(cancel, MOST_MS);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    // Where one of the two is not answered, the other is enough.
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.throwIfAborted();
    if (four.status === "rejected" && six.status === "rejected") throw unresolved(four.reason);
    return [...found(four, 4), ...found(six, 6)];
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", cancel);
  }
}

const found = (answer: PromiseSettledResult<string[]>, family: number): Resolved[] =>
  answer.status === "fulfilled" ? answer.value.slice(0, MOST_ADDRESSES).map((address) => ({ address, family })) : [];

function unresolved(cause: { code?: string }): Error {
  const code = cause.code === "ECANCELLED" ? "ETIMEOUT" : cause.code;
  return Object.assign(new Error("the host's name does not resolve", { cause }), { code });
}
