// Keeps messages instead of sending them, and shows each on the console: what a developer without credentials wants.
//
// What arrives together shares a commit. A message that its real provider would have refused by itself is refused here as well. In development
// the next few may be made to fail (faults.ts).

import type { Message, Provider, SendOptions } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import { CHANNELS } from "#domain/notification.ts";
import { isDataError, isOutage } from "#store/connection/database.ts";
import { createGroupCommit } from "#timing/group-commit.ts";
import { lineOf } from "./console.ts";
import { fail, type TakeFault } from "./faults.ts";
import type { Wire } from "./wire.ts";

export type Kept = Message & { wire: Wire };

/** The mailbox, for all providers of this type. */
export type Keeping = {
  keep(message: Kept): Promise<Stored> | undefined;
  idle(): Promise<void>;
};

/** `refused`: the database will never have it. `failed`: not now. */
type Stored = "stored" | "refused" | "failed";

export type DevOptions = {
  name: string;
  /** In development. */
  takeFault?: TakeFault | undefined;
  keeping: Keeping;
  wireOf: (message: Message) => Promise<Wire | Reply>;
  print: (line: string) => void;
};

export function devProvider({ name, takeFault, keeping, wireOf, print }: DevOptions) {
  async function keep(message: Message): Promise<Reply> {
    const wire = await wireOf(message);
    if ("kind" in wire) return wire;
    const stored = keeping.keep({ ...message, wire });
    if (!stored) return { kind: "limited", reason: "too much is waiting to be kept", category: "throttled" };
    switch (await stored) {
      case "stored":
        print(lineOf(message));
        return { kind: "accepted" };
      case "refused":
        return { kind: "rejected", reason: "the mailbox cannot hold what it says", category: "content" };
      case "failed":
        return { kind: "unavailable", reason: "it could not be kept", category: "outage" };
    }
  }

  return {
    name,
    channels: CHANNELS,
    capabilities: { batch: 1, attachments: true, tracking: false, reconciles: false },
    encode: wireOf,
    // What one tenant makes fail is no affair of another's, nor of its own other channels.
    ...(takeFault && { receiver: ({ request }: Pick<Message, "request">) => request.channel }),
    async send(message: Message, options: SendOptions) {
      const taken = await takeFault?.(message, name).catch(() => undefined);
      return taken ? fail(taken, options, () => keep(message)) : keep(message);
    },
  } satisfies Provider;
}

/** `store` keeps them together, or none of them. */
export function createKeeping(store: (messages: readonly Kept[]) => Promise<void>): Keeping {
  const commits = createGroupCommit<Kept, Stored>({
    abreast: 1,
    maxWaitingRows: 10_000,
    maxWaitingBytes: 64 * 1024 * 1024,
    ownerOf: ({ tenant }) => tenant,
    commit: (messages) =>
      bisect<Kept, Stored>(messages, {
        act: async (some) => {
          await store(some);
          return some.map(() => "stored");
        },
        isOutage,
        refuse: (error) => (isDataError(error) ? "refused" : "failed"),
      }).catch(() => messages.map(() => "failed")),
  });
  return { keep: (message) => commits.submitOne(message, 2 * message.wire.body.length + 1_000), idle: commits.idle };
}
