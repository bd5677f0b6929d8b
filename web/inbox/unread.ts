// How many are unread. The stream tells it, and so does every answer; what was told last stands.

import type { InboxApi } from "./api.ts";
import type { InboxState } from "./state.ts";

export type Unread = {
  told(count: number): void;
  /** For a count that is asked for now: what the stream tells before it comes stands, or a newer count is to come. */
  asked(): (count: number) => void;
  close(): void;
};

const RECOUNT_WAIT_MS = 300;
/** As many as the badge can tell. */
const COUNTED = 100;

export function createUnread(
  state: InboxState,
  { api, category, onChange }: { api: InboxApi; category: string | undefined; onChange: () => void },
): Unread {
  let timesTold = 0;
  let isClosed = false;
  let recounting: ReturnType<typeof setTimeout> | undefined;

  async function recount(): Promise<void> {
    const answer = await api.list({ limit: String(COUNTED), unread: "true", category });
    if (!answer.ok || isClosed) return;
    state.unread = answer.value.data.length;
    onChange();
  }

  /** The server counts all categories together; one of them has to be counted apart. */
  function told(count: number): void {
    timesTold++;
    if (category === undefined) state.unread = count;
    else {
      clearTimeout(recounting);
      recounting = setTimeout(recount, RECOUNT_WAIT_MS);
    }
  }

  return {
    told,
    asked() {
      const before = timesTold;
      return (count) => {
        if (before === timesTold) told(count);
      };
    },
    close() {
      isClosed = true;
      clearTimeout(recounting);
    },
  };
}
