// A provider that does what it is told: for chaos tests and benchmarks.
//
// What it accepted it writes to a log with fsync, before it answers, hangs or breaks off: that log is
// the truth that tests compare the record with. Each line is one provider call that took effect.

import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Message, Provider, SendOptions } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { CHANNELS } from "#domain/notification.ts";
import { type Clock, startClock } from "#wire/clock.ts";

/** How often each of these happens, as shares; what is left of 1 is accepted plainly. */
export type Mix = {
  rejected?: number;
  deadRecipient?: number;
  unavailable?: number;
  limited?: number;
  /** Neither accepts nor answers. */
  hang?: number;
  acceptThenHang?: number;
  acceptThenReset?: number;
};

export type TestProviderOptions = {
  name?: string;
  /** Where accepted calls are written; none keeps no log. */
  log?: string;
  latencyMs?: number | [least: number, most: number];
  mix?: Mix;
  retryAfterMs?: number;
  /** What one message costs, in US dollars. */
  cost?: number;
  random?: () => number;
  /** Called as a send begins. */
  onSend?: (message: Message) => void;
  /** Decides the fate of each message; undefined leaves it to the mix. */
  decide?: (message: Message) => keyof typeof FATES | undefined;
  /** Behind which server it stands, as for a provider that goes to URLs which tenants give. */
  receiver?: NonNullable<Provider["receiver"]>;
};

export function testProvider(options: TestProviderOptions): Provider {
  const { name = "test", log, latencyMs = 0, mix = {}, retryAfterMs, random = Math.random } = options;
  const { onSend, decide, receiver, cost } = options;
  const taken: Reply = { kind: "accepted", ...(cost !== undefined && { cost }) };
  const [least, most] = typeof latencyMs === "number" ? [latencyMs, latencyMs] : latencyMs;
  const file = log === undefined ? undefined : openSync(log, "a");
  const accepted = new Set<string>();

  function accept(message: Message): void {
    if (file === undefined) return;
    accepted.add(message.notificationId);
    writeSync(
      file,
      `${JSON.stringify({ id: message.notificationId, attempt: message.attempt, pid: process.pid, at: Date.now() })}\n`,
    );
    fsyncSync(file);
  }

  async function act(message: Message, { signal, timeoutMs }: SendOptions): Promise<Reply> {
    const clock = startClock({ signal, timeoutMs });
    return fateOf(message, clock).finally(clock.stop);
  }

  async function fateOf(message: Message, { signal, restart }: Clock): Promise<Reply> {
    const delayMs = least + random() * (most - least);
    if (delayMs > 0) {
      const isCut = await sleep(delayMs, false, { signal }).catch(() => true);
      if (isCut) return { kind: "unavailable", reason: "stopped before the request left" };
    }
    restart();
    const decided = decide?.(message);
    switch (decided ? FATES[decided] : draw(mix, random())) {
      case "rejected":
        return { kind: "rejected", reason: "the test provider rejects it" };
      case "deadRecipient":
        return { kind: "dead-recipient", reason: "the recipient is gone" };
      case "unavailable":
        return { kind: "unavailable", reason: "503", ...(retryAfterMs !== undefined && { retryAfterMs }) };
      case "limited":
        return { kind: "limited", reason: "429", ...(retryAfterMs !== undefined && { retryAfterMs }) };
      case "hang":
        await aborted(signal);
        return { kind: "ambiguous", reason: "no answer in time" };
      case "acceptThenHang":
        accept(message);
        await aborted(signal);
        return { kind: "ambiguous", reason: "no answer in time" };
      case "acceptThenReset":
        accept(message);
        return { kind: "ambiguous", reason: "connection reset" };
      default:
        accept(message);
        return taken;
    }
  }

  const isPlain = file === undefined && most === 0 && !decide && Object.keys(mix).length === 0;
  return {
    name,
    channels: CHANNELS,
    capabilities: {
      batch: 1,
      attachments: true,
      tracking: false,
      reconciles: true,
      ...(cost !== undefined && { cost }),
    },
    ...(receiver && { receiver }),
    send(message, sendOptions) {
      onSend?.(message);
      return isPlain ? taken : act(message, sendOptions);
    },
    async reconcile({ notificationId }) {
      return accepted.has(notificationId) ? "accepted" : "unknown";
    },
    async close() {
      if (file !== undefined) closeSync(file);
    },
  };
}

const FATES = {
  accepted: undefined,
  dead: "deadRecipient",
  away: "unavailable",
  throttled: "limited",
  silent: "hang",
} as const;

function draw(mix: Mix, point: number): keyof Mix | undefined {
  let rest = point;
  for (const [fate, share] of Object.entries(mix)) {
    rest -= share;
    if (rest < 0) return fate as keyof Mix;
  }
  return undefined;
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
