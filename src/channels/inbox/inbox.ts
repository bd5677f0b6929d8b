// Puts messages into users' inboxes, which is all it takes: who is away finds them on return.
//
// What arrives together shares a commit. Storing twice stores once, so an answer that was lost is no worry: it is simply
// sent again.

import type { Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import { itemOf, type NewItem } from "#domain/inbox.ts";
import { isDataError, isOutage } from "#store/connection/database.ts";
import { createGroupCommit } from "#timing/group-commit.ts";

const ABREAST = 2;

/** `refused`: the database will never have it. `failed`: not now. */
type Stored = "stored" | "refused" | "failed";

export function inboxProvider(store: (items: readonly NewItem[]) => Promise<void>): Provider {
  const commits = createGroupCommit<NewItem, Stored>({
    abreast: ABREAST,
    maxWaitingRows: 100_000,
    maxWaitingBytes: 64 * 1024 * 1024,
    commit: (items) =>
      bisect<NewItem, Stored>(items, {
        act: async (some) => {
          await store(some);
          return some.map(() => "stored");
        },
        isOutage,
        refuse: (error) => (isDataError(error) ? "refused" : "failed"),
        // What an outage leaves unknown is stored once, however often it is sent.
      }).catch(() => items.map(() => "failed")),
  });

  return {
    name: "inbox",
    channels: ["inbox"],
    capabilities: { batch: 1000, attachments: false, tracking: true, reconciles: true },
    validate({ recipient, content, ...rest }) {
      const item = itemOf({ id: "", tenant: 0 }, { ...rest, recipient: { userId: "u", ...recipient }, content });
      return "fault" in item
        ? [{ path: "/content/clickAction", message: "must be an http or https URL, or a path" }]
        : [];
    },
    encode(message) {
      const item = newItemOf(message);
      return "kind" in item ? item : { type: "application/json", body: JSON.stringify(item) };
    },
    async send(message) {
      const item = newItemOf(message);
      if ("kind" in item) return item;
      const stored = commits.submitOne(item, sizeOf(item));
      if (!stored) return { kind: "limited", reason: "too much is waiting to be stored", category: "throttled" };
      // The database's own words might hold what was to be stored.
      switch (await stored) {
        case "stored":
          return { kind: "accepted" };
        case "refused":
          return { kind: "rejected", reason: "the inbox cannot hold what it says", category: "content" };
        case "failed":
          return { kind: "unavailable", reason: "the inbox could not be stored", category: "outage" };
      }
    },
    /** To find out is to send again, which stores nothing twice. */
    reconcile: async () => "unknown-message",
    close: commits.idle,
  };
}

function newItemOf({ notificationId: id, tenant, request }: Message): NewItem | Reply {
  const item = itemOf({ id, tenant }, request);
  return "fault" in item ? { kind: "rejected", reason: item.fault, category: "content" } : item;
}

const sizeOf = ({ title, body, data }: NewItem): number =>
  (title?.length ?? 0) + (body?.length ?? 0) + (data ? JSON.stringify(data).length : 0) + 200;
