// Those who wait for the mailbox, wired. The connection that listens for them is opened with the first of them.

import { createWaits, type Waits } from "#following/waits.ts";
import type { Listening } from "#store/connection/listen.ts";
import { listenToMailboxes } from "#store/connection/mailbox-hint.ts";
import type { Base } from "./base.ts";

export function openMailbox({ url, facts }: Pick<Base, "url" | "facts">): { waits: Waits; stop(): Promise<void> } {
  const waits = createWaits();
  let listening: Listening | undefined;
  return {
    waits: {
      ...waits,
      wait(waiting) {
        listening ??= listenToMailboxes(url, waits.tell, (error) => facts.listenerLost("mailbox", error));
        return waits.wait(waiting);
      },
    },
    stop: async () => listening?.stop(),
  };
}
