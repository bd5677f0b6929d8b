// A connection to RabbitMQ with the one channel that is published on.
//
// It ends once, for a reason, and then nothing more is written: its socket is destroyed with whatever waits in it.

import type { ConfirmChannel } from "amqplib";
import type { SettingsOfSink } from "./settings.ts";

type Amqp = typeof import("amqplib");

/** Where, as whom. */
export type Place = { amqp: Amqp; url: string; socket: object };

export type Link = {
  channel: ConfirmChannel;
  /** Aborted when it has ended; its reason says why. */
  ended: AbortSignal;
  cut(reason: unknown): void;
  /** Set while the broker takes nothing from anybody. */
  whyWaiting(): Error | undefined;
  /** Says goodbye first; never rejects. */
  close(): Promise<void>;
};

const CONNECT_MS = 10_000;
const GOODBYE_MS = 2_000;
/** Messages: after so many the socket is written to, and the broker begins. */
const WRITTEN_AT_ONCE = 128;
/** After two of them without a sign of life the connection is given up. */
const HEARTBEAT_SECONDS = 15;

/** Throws where the URL is none: without it, as there is a password in it. */
export function placeOf(amqp: Amqp, { url, ca }: SettingsOfSink<"rabbitmq">, name: string): Place {
  const parsed = parse(url);
  if (parsed === undefined) throw new Error(`url of the sink ${name} must be amqp:// or amqps:// with a host`);
  const { href, username, password } = parsed;
  return {
    amqp,
    url: href,
    socket: {
      noDelay: true,
      timeout: CONNECT_MS,
      clientProperties: { connection_name: `carillon sink ${name}` },
      // Of its own accord it takes what is percent-encoded for Latin-1.
      ...((username !== "" || password !== "") && {
        credentials: amqp.credentials.plain(username, password),
      }),
      ...(ca !== undefined && { ca: [ca] }),
    },
  };
}

function parse(url: string): { href: string; username: string; password: string } | undefined {
  try {
    const parsed = new URL(url);
    if (!/^amqps?:$/.test(parsed.protocol) || parsed.hostname === "") return undefined;
    if (!parsed.searchParams.has("heartbeat")) parsed.searchParams.set("heartbeat", `${HEARTBEAT_SECONDS}`);
    const [username = "", password = ""] = [parsed.username, parsed.password].map(decodeURIComponent);
    return { href: parsed.href, username, password };
  } catch {
    return undefined;
  }
}

export async function openLink({ amqp, url, socket }: Place, signal: AbortSignal): Promise<Link> {
  signal.throwIfAborted();
  const ending = new AbortController();
  const cut = (reason: unknown) => ending.abort(reason);
  const onAborted = () => cut(signal.reason);
  signal.addEventListener("abort", onAborted);
  try {
    // The socket is destroyed by the signal, also while it connects.
    const connection = await unlessEnded(
      amqp.connect(url, { ...socket, signal: ending.signal } as object),
      ending.signal,
    );
    connection.on("error", cut);
    connection.on("close", (error) => cut(error ?? new Error("RabbitMQ closed the connection")));
    let why: Error | undefined;
    connection.on("blocked", (reason) => {
      why = new Error(`RabbitMQ takes no messages for now: ${reason}`);
    });
    connection.on("unblocked", () => {
      why = undefined;
    });
    const channel = await unlessEnded(
      connection.createConfirmChannel({ highWaterMark: WRITTEN_AT_ONCE }),
      ending.signal,
    );
    channel.on("error", cut);
    channel.on("close", () => cut(new Error("RabbitMQ closed the channel")));
    return {
      channel,
      ended: ending.signal,
      cut,
      whyWaiting: () => why,
      async close() {
        const tooLong = setTimeout(cut, GOODBYE_MS, new Error("closed"));
        await connection.close().catch(() => undefined);
        clearTimeout(tooLong);
        cut(new Error("closed"));
      },
    };
  } catch (error) {
    cut(error);
    throw ending.signal.reason;
  } finally {
    signal.removeEventListener("abort", onAborted);
  }
}

/** The client may never answer where its socket is gone. */
async function unlessEnded<Value>(answer: Promise<Value>, ended: AbortSignal): Promise<Value> {
  let onEnded = () => {};
  const end = new Promise<never>((_, reject) => {
    onEnded = () => reject(ended.reason);
    ended.addEventListener("abort", onEnded);
    if (ended.aborted) onEnded();
  });
  return Promise.race([answer, end]).finally(() => ended.removeEventListener("abort", onEnded));
}
