// Follows the one of several servers that can be written to.
//
// A server that was replaced may just be silent, and then nobody who waits for its answer learns of it. So one connection asks it every second
// whether it still leads. When it does not, or does not say so in time, all are asked anew; only when another one leads is the
// old one left, with everything that is open to it.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { findServer, isWritable, type Server } from "./servers.ts";

export type Leader = {
  /** Where to connect; waits while it is being found out. Undefined when there is but one; throws when none will do. */
  find(): Promise<Server | undefined>;
  /** Something suggests that it leads no longer. */
  doubt(): void;
  close(): void;
};

const WATCH_MS = 1_000;
const ANSWER_MS = 3_000;
const AGAIN_MS = 250;

/** `onMoved` is called when another one leads than before. */
export function followLeader(servers: readonly Server[], onMoved: (to: Server) => void): Leader {
  if (servers.length === 1) return { find: async () => undefined, doubt: () => undefined, close: () => undefined };
  const closing = new AbortController();
  const { signal } = closing;
  let leader: Server | undefined;
  let searching: Promise<Server> | undefined;

  function search(): Promise<Server> {
    searching ??= findServer(servers)
      .then((found) => {
        const before = leader;
        leader = found;
        if (before && before !== found) onMoved(found);
        return found;
      })
      .finally(() => {
        searching = undefined;
      });
    return searching;
  }

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      try {
        await watchOne(await search(), signal);
      } catch {
        // Whoever wants to connect is told why not.
        await sleep(AGAIN_MS, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }
  void watch();

  return {
    find: async () => (searching ? searching : (leader ?? search())),
    doubt: () => void search().catch(() => undefined),
    close: () => closing.abort(),
  };
}

/** Returns when the server is no leader any more, or does not answer. */
async function watchOne({ url }: Server, signal: AbortSignal): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "carillon watch",
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  const over = new AbortController();
  const end = () => over.abort();
  client.on("error", end).on("end", end);
  signal.addEventListener("abort", end);
  try {
    await client.connect();
    while (!over.signal.aborted && (await isWritable(client))) {
      await sleep(WATCH_MS, undefined, { signal: over.signal }).catch(() => undefined);
    }
  } catch {
    // It is looked for anew.
  } finally {
    signal.removeEventListener("abort", end);
    client.end().catch(() => undefined);
  }
}
