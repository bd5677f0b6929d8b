// How the provider dev answers when a send is to fail: as a provider in trouble would.

import type { Message, SendOptions } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { DevFault } from "#domain/dev-fault.ts";
import { startClock } from "#wire/clock.ts";

export type Taken = { fault: DevFault; retryAfterSeconds: number | null };
/** One of those that are left, if any: in development only. */
export type TakeFault = (message: Message, provider: string) => Promise<Taken | undefined>;

const AS_ASKED = "as was asked for";

/** `keep`: what it would have done. */
export async function fail(
  { fault, retryAfterSeconds }: Taken,
  options: SendOptions,
  keep: () => Promise<Reply>,
): Promise<Reply> {
  const delay = retryAfterSeconds === null ? {} : { retryAfterMs: retryAfterSeconds * 1000 };
  switch (fault) {
    case "429":
      return {
        kind: "limited",
        reason: `too many requests, ${AS_ASKED}`,
        code: "429",
        category: "throttled",
        ...delay,
      };
    case "503":
      return { kind: "unavailable", reason: `unavailable, ${AS_ASKED}`, code: "503", category: "outage", ...delay };
    case "refused":
      return { kind: "rejected", reason: `refused, ${AS_ASKED}`, code: "550", category: "recipient" };
    case "dead-recipient":
      return { kind: "dead-recipient", reason: `no such recipient, ${AS_ASKED}`, code: "410", category: "recipient" };
    case "hang":
      await untilOver(options);
      return { kind: "ambiguous", reason: `no answer in time, ${AS_ASKED}`, category: "timeout" };
    case "lost-answer": {
      const kept = await keep();
      if (kept.kind !== "accepted") return kept;
      return { kind: "ambiguous", reason: `the answer was lost, ${AS_ASKED}`, category: "network" };
    }
  }
}

function untilOver(options: SendOptions): Promise<void> {
  const { signal, stop } = startClock(options);
  return new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  }).finally(stop);
}
