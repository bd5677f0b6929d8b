// Puts messages into users' inboxes, which is all it takes: who is away finds them on return.
//
// What arrives together shares a commit. Storing twice stores once, so an answer that was lost is no worry: it is simply
// sent again.

import { createGroupCommit } from "../domain/group-commit.ts";
import { itemOf, type NewItem } from "../domain/inbox.ts";
import type { Message, Provider } from "./channel.ts";

const LANES = 2;

export function inboxProvider(store: (items: NewItem[]) => Promise<void>): Provider {
  const commits = createGroupCommit<NewItem, Error | undefined>({
    lanes: LANES,
    maxWaitingRows: 100_000,
    maxWaitingBytes: 64 * 1024 * 1024,
    async commit(items) {
      try {
        await store(items);
        return items.map(() => undefined);
      } catch (error) {
        return items.length === 1 ? [asError(error)] : oneByOne(items, store);
      }
    },
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
    async send({ notificationId: id, tenant, request }: Message) {
      const item = itemOf({ id, tenant }, request);
      if ("fault" in item) return { kind: "rejected", reason: item.fault, category: "content" };
      const stored = commits.submitOne(item, sizeOf(item));
      if (!stored) return { kind: "limited", reason: "too much is waiting to be stored", category: "throttled" };
      const error = await stored;
      // Its words might hold what was to be stored.
      if (error) return { kind: "unavailable", reason: "the inbox could not be stored", category: "outage" };
      return { kind: "accepted" };
    },
    /** To find out is to send again, which stores nothing twice. */
    reconcile: async () => "unknown-message",
    close: commits.idle,
  };
}

/** One that the database will not have must not keep the others out. An outage fails them all just the same. */
async function oneByOne(items: NewItem[], store: (items: NewItem[]) => Promise<void>): Promise<(Error | undefined)[]> {
  const outcomes: (Error | undefined)[] = [];
  let failures = 0;
  for (const item of items) {
    if (failures > 2) {
      outcomes.push(new Error("not tried"));
      continue;
    }
    const outcome = await store([item]).then(() => undefined, asError);
    if (outcome) failures++;
    outcomes.push(outcome);
  }
  return outcomes;
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

const sizeOf = ({ title, body, data }: NewItem): number =>
  (title?.length ?? 0) + (body?.length ?? 0) + (data ? JSON.stringify(data).length : 0) + 200;
