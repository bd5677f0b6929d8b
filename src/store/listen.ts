// A connection that listens, through reconnects.

import pg from "pg";

export type Heard = { channel: string; payload?: string | undefined };
export type Listening = { stop(): Promise<void> };

const RECONNECT_MS = 1_000;

/** `onConnected` is called each time it listens again: something may have been missed. */
export function listenOn(
  url: string,
  { name, channels }: { name: string; channels: readonly string[] },
  onHeard: (heard: Heard) => void,
  onConnected: () => void,
): Listening {
  let isStopped = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const mine = new pg.Client({
      connectionString: url,
      application_name: `carillon ${name}`,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    });
    client = mine;
    mine.on("error", () => undefined);
    mine.on("notification", onHeard);
    mine.on("end", again);
    try {
      await mine.connect();
      for (const channel of channels) await mine.query(`listen ${channel}`);
      onConnected();
    } catch {
      await mine.end().catch(() => undefined);
      again();
    }
  }
  function again(): void {
    if (isStopped || timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      void connect();
    }, RECONNECT_MS);
  }
  void connect();
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
