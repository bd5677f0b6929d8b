// What the reader does with notifications: read, read all, archive. Nothing is shown as done before the server has it:
// there is nothing to take back then.

import type { Failure, InboxApi, Verb } from "./api.ts";
import type { InboxState } from "./state.ts";
import type { Unread } from "./unread.ts";

export type Mark = Exclude<Verb, "ack">;

export type Marks = {
  mark(verb: Mark, ids: string[]): Promise<void>;
  /** As this tab or another one has done it. */
  apply(verb: Mark, ids: string[]): void;
  isArchived(id: string): boolean;
  close(): void;
};

type Options = {
  api: InboxApi;
  category: string | undefined;
  unread: Unread;
  onChange: () => void;
  onMarked: (verb: Mark, ids: string[]) => void;
  onFailure: (failure: Failure) => void;
};

export function createMarks(state: InboxState, options: Options): Marks {
  const { api, category, unread, onChange, onMarked, onFailure } = options;
  const archived = new Set<string>();
  const busy = new Set<string>();
  let isClosed = false;

  async function mark(verb: Mark, ids: string[]): Promise<void> {
    const wanted = ids.filter((id) => !busy.has(id));
    if (wanted.length === 0 && verb !== "read-all") return;
    for (const id of wanted) busy.add(id);
    const body = verb !== "read-all" ? { ids: wanted } : category === undefined ? {} : { category };
    const count = unread.asked();
    const answer = await api.mark(verb, body);
    for (const id of wanted) busy.delete(id);
    if (isClosed) return;
    state.isUnsaved = !answer.ok;
    if (answer.ok) {
      const read = state.items.filter(({ id, readAt }) => !readAt && wanted.includes(id)).length;
      onMarked(verb, wanted);
      apply(verb, wanted);
      const counted = verb === "read-all" ? 0 : Math.max(0, state.unread - read);
      count(answer.value.unread ?? counted);
    } else onFailure(answer.failure);
    onChange();
  }

  function apply(verb: Mark, ids: string[]): void {
    const readAt = new Date().toISOString();
    if (verb === "archive") {
      for (const id of ids) archived.add(id);
      state.items = state.items.filter(({ id }) => !archived.has(id));
    } else {
      state.items = state.items.map((item) =>
        !item.readAt && (verb === "read-all" || ids.includes(item.id)) ? { ...item, readAt } : item,
      );
    }
    onChange();
  }

  return {
    mark,
    apply,
    isArchived: (id) => archived.has(id),
    close() {
      isClosed = true;
    },
  };
}
