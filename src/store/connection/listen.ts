// A connection that listens, through reconnects.
//
// Whoever only listens does not notice that the other end is gone: no packet is missed where none is expected. So it sends
// itself a notification every few seconds, over the same connection and through the server's queue. One that does not come back in time
// means that hints are being missed: the connection is given up and a new one made.

import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { leadingUrl } from "./servers.ts";

export type Heard = { channel: string; payload?: string | undefined };
export type Listening = { stop(): Promise<void> };

export type ListenOptions = {
  name: string;
  channels: readonly string[];
  onHeard: (heard: Heard) => void;
  /** Each time it listens again: something may have been missed. */
  onConnected: () => void;
  /** It listened, and does no longer. */
  onLost?: OnLost | undefined;
  timing?: ListenTiming | undefined;
};
export type OnLost = (error: Error) => void;
export type ListenTiming = { beatMs: number; answerMs: number; reconnectMs: number };

/** Together, with the connecting, under ten seconds. */
const TIMING: ListenTiming = { beatMs: 3_000, answerMs: 3_000, reconnectMs: 1_000 };

export function listenOn(url: string, options: ListenOptions): Listening {
  const { onLost, timing = TIMING } = options;
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const error = await listenOnce(url, { ...options, timing }, signal);
      if (error && !signal.aborted) onLost?.(error);
      await sleep(timing.reconnectMs, undefined, { signal }).catch(() => undefined);
    }
  }
  const running = run();
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}

/** Listens for as long as it goes well; answers with what ended it, unless it never began. */
async function listenOnce(
  url: string,
  { name, channels, onHeard, onConnected, timing }: ListenOptions & { timing: ListenTiming },
  signal: AbortSignal,
): Promise<Error | undefined> {
  const leading = await leadingUrl(url).catch(() => undefined);
  // An abort that came meanwhile is not told any more.
  if (leading === undefined || signal.aborted) return undefined;
  const { beatMs, answerMs } = timing;
  // Ours, as a client whose server is silent can only be ended by its socket.
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: leading,
    application_name: `carillon ${name}`,
    keepAlive: true,
    connectionTimeoutMillis: answerMs,
    query_timeout: answerMs,
    stream: () => socket,
  });
  const beatChannel = `carillon_beat_${crypto.randomUUID().replaceAll("-", "")}`;
  let heardBeat = (): void => {};
  client.on("error", () => undefined);
  client.on("notification", (heard) => (heard.channel === beatChannel ? heardBeat() : onHeard(heard)));
  let over: Error | undefined;
  let giveUp = (_error: Error): void => {};
  const end = (why: string) => {
    over ??= new Error(why);
    giveUp(over);
  };
  const stop = () => end("stopped");
  client.once("end", () => end("the connection was closed"));
  signal.addEventListener("abort", stop);

  /** Not a race: a promise that lasts as long as the connection would remember every one. */
  const unlessOver = <Value>(promise: Promise<Value>): Promise<Value> =>
    new Promise((resolve, reject) => {
      giveUp = reject;
      if (over) reject(over);
      promise.then(resolve, reject);
    });

  async function beat(): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      heardBeat = resolve;
    });
    const late = setTimeout(() => end(`nothing heard of a notification to itself in ${answerMs} ms`), answerMs);
    late.unref();
    await unlessOver(client.query("select pg_notify($1, '')", [beatChannel]).then(() => heard));
    clearTimeout(late);
  }

  let isListening = false;
  try {
    await unlessOver(client.connect());
    for (const channel of [beatChannel, ...channels]) await unlessOver(client.query(`listen ${channel}`));
    isListening = true;
    onConnected();
    for (;;) {
      await unlessOver(sleep(beatMs, undefined, { ref: false }));
      await beat();
    }
  } catch (error) {
    return isListening && error instanceof Error ? error : undefined;
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}
