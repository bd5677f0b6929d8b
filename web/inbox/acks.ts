// Tells the server what was on the screen, a moment later and many at once. What could not be told is kept.

import type { InboxApi } from "./api.ts";

export type Acks = { add(ids: readonly string[]): void; send(): void };

const ACK_WAIT_MS = 250;
const ACK_AT_ONCE = 100;

export function createAcks(api: Pick<InboxApi, "mark">): Acks {
  const seen = new Set<string>();
  const waiting = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function send(): void {
    clearTimeout(timer);
    if (waiting.size === 0) return;
    timer = setTimeout(async () => {
      const ids = [...waiting].slice(0, ACK_AT_ONCE);
      for (const id of ids) waiting.delete(id);
      const answer = await api.mark("ack", { ids });
      if (answer.ok) send();
      else for (const id of ids) waiting.add(id);
    }, ACK_WAIT_MS);
  }

  return {
    add(ids) {
      for (const id of ids) {
        if (!seen.has(id)) waiting.add(id);
        seen.add(id);
      }
      send();
    },
    send,
  };
}
