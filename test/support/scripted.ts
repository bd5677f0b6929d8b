// What a stand-in for an HTTP server notes of its requests and how it is told to answer, whichever HTTP it speaks.

import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Listening } from "./listening.ts";

export type Received = {
  method: string;
  /** With the query. */
  path: string;
  /** Names in lower case. */
  headers: { [name: string]: string };
  body: string;
  /** Which connection it came on, counted from 1. */
  connection: number;
};

/** An object as body is sent as JSON. */
export type Said = { status: number; headers?: { [name: string]: string }; body?: string | object; delayMs?: number };
export type Answer =
  | Said
  /** Reads the request and says nothing. */
  | "hang"
  /** Reads the request and breaks the connection. */
  | "reset"
  /** Begins a 200 and breaks the connection before the body is complete. */
  | "break"
  /** Sends a body of this many bytes, as fast as it is taken. */
  | { flood: number };

export type Script = Answer | ((received: Received) => Answer);

/** What a test asks of a stand-in for an HTTP server. */
export type StandIn = {
  /** Without a slash at the end. */
  url: string;
  /** Every request that was read completely, in order. */
  received: Received[];
  /** How all requests from now on are answered. */
  answer(script: Script): void;
  /** Resolves when this many requests have been read. */
  arrived(count: number): Promise<void>;
  connections: Listening["connections"];
  /** Closes the connections as a server does with idle ones; resolves when they are gone. */
  dropConnections(): Promise<void>;
  forsaken: Listening["forsaken"];
  /** How many bytes of floods were handed to the network. */
  flooded(): number;
  close(): Promise<void>;
};

/** How an answer is acted out on one kind of connection. */
export type Acts = {
  hang(): void;
  reset(): void;
  break(): void;
  /** The head of a flood; what it fills. */
  flood(): Writable;
  say(status: number, headers: { [name: string]: string }, body: string): void;
};

export type Scripted = Pick<StandIn, "received" | "answer" | "flooded"> & {
  /** Reads the request to its end, notes it, and answers as told. */
  take(head: Omit<Received, "body" | "headers"> & { headers: object }, body: AsyncIterable<Buffer>, acts: Acts): void;
};

const FLOOD_PART = Buffer.alloc(65_536, "x");

/** `onTaken` is called once a request is noted and answered. */
export function createScripted(onTaken: () => void): Scripted {
  const received: Received[] = [];
  let script: Script = { status: 404 };
  let flooded = 0;

  async function flood(into: Writable, bytes: number): Promise<void> {
    const closed = once(into, "close");
    for (let left = bytes; left > 0 && !into.destroyed; left -= FLOOD_PART.length) {
      flooded += FLOOD_PART.length;
      if (!into.write(FLOOD_PART)) await Promise.race([once(into, "drain"), closed]);
    }
    into.end();
  }

  function act(answer: Answer, acts: Acts): void {
    if (typeof answer === "string") acts[answer]();
    else if ("flood" in answer) flood(acts.flood(), answer.flood).catch(() => undefined);
    else if (answer.delayMs === undefined) say(acts, answer);
    else setTimeout(() => say(acts, answer), answer.delayMs).unref();
  }

  return {
    received,
    answer(next) {
      script = next;
    },
    flooded: () => flooded,
    take({ headers, ...head }, body, acts) {
      const taken = textOf(body).then((text) => {
        const named = Object.entries(headers).filter(([name]) => !name.startsWith(":"));
        const one = {
          ...head,
          headers: Object.fromEntries(named.map(([name, value]) => [name, String(value)])),
          body: text,
        };
        received.push(one);
        act(typeof script === "function" ? script(one) : script, acts);
        onTaken();
      });
      // The client went away before its request was complete.
      taken.catch(() => undefined);
    },
  };
}

export async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

export function say(acts: Pick<Acts, "say">, { status, headers = {}, body = "" }: Said): void {
  const isText = typeof body === "string";
  acts.say(
    status,
    { ...(!isText && { "content-type": "application/json" }), ...headers },
    isText ? body : JSON.stringify(body),
  );
}
