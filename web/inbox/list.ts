// The list: pages from the server, and what the stream brings, merged by id.

import type { Failure, InboxApi, InboxNotification, Page } from "./api.ts";
import { isAfter } from "./position.ts";
import type { InboxState } from "./state.ts";
import type { Unread } from "./unread.ts";

export type List = {
  /** From the stream, which tells it at the position `at`. */
  arrive(notification: InboxNotification, at: string | undefined): void;
  /** Where the stream is resumed, it tells what came meanwhile. Where it begins anew, the list is all there is. */
  reload(stream: "resumed" | "anew"): Promise<void>;
  more(): Promise<void>;
  close(): void;
};

type Options = {
  api: InboxApi;
  category: string | undefined;
  unread: Unread;
  isArchived: (id: string) => boolean;
  onChange: () => void;
  onArrival: (notification: InboxNotification) => void;
  /** The first page reaches up to here. */
  onPosition: (position: string) => void;
  onFailure: (failure: Failure) => void;
};

const PAGE = 20;

export function createList(state: InboxState, options: Options): List {
  const { category, isArchived, onChange, onPosition } = options;
  const pages = createPages(state, options);
  const tell = once(options.onArrival);
  let arrivedSinceLoad: { notification: InboxNotification; at: string | undefined }[] = [];
  /** Up to where the first list reached, and the latest. */
  let firstPosition: string | undefined;
  let position: string | undefined;

  return {
    /**
     * A stream that goes on where it stopped also tells what a list that was loaded meanwhile reached already: such a one is
     * in its place, or will be when its page is loaded. What the first list reached was there before us and is no arrival.
     */
    arrive(notification, at) {
      const { id } = notification;
      if (isArchived(id) || (category !== undefined && notification.category !== category)) return;
      const isListed = state.items.some((item) => item.id === id);
      if (!isListed && isAfter(at, position)) {
        state.items.unshift(notification);
        arrivedSinceLoad.unshift({ notification, at });
      }
      if (isAfter(at, firstPosition)) tell(notification);
      onChange();
    },

    async reload(stream) {
      arrivedSinceLoad = [];
      const page = await pages.fetch("first");
      if (!page) return;
      position = page.position;
      onPosition(page.position);
      const known = new Set(state.items.map(({ id }) => id));
      const newestAt = state.items[0]?.createdAt ?? "";
      const missed = page.data.filter(
        ({ id, createdAt, readAt }) => !known.has(id) && !readAt && createdAt >= newestAt,
      );
      const arrived = arrivedSinceLoad
        .filter(({ at }) => isAfter(at, position))
        .map(({ notification }) => notification);
      state.items = [...arrived, ...page.data].filter(({ id }) => !isArchived(id));
      onChange();
      // The oldest first.
      if (state.isLoaded && stream === "anew") for (const notification of missed.reverse()) tell(notification);
      firstPosition ??= position;
      state.isLoaded = true;
    },

    async more() {
      if (!state.hasMore || state.isLoading) return;
      const page = await pages.fetch("next");
      if (!page) return;
      const known = new Set(state.items.map(({ id }) => id));
      state.items.push(...page.data.filter(({ id }) => !known.has(id) && !isArchived(id)));
      onChange();
    },

    close: pages.close,
  };
}

/** One page after the other; an answer that another request has overtaken is dropped. */
function createPages(state: InboxState, { api, category, unread, onChange, onFailure }: Options) {
  let cursor: string | null = null;
  let load = 0;
  let isClosed = false;

  async function fetchPage(which: "first" | "next"): Promise<Page | undefined> {
    const mine = ++load;
    state.isLoading = true;
    onChange();
    const count = unread.asked();
    const from = which === "first" ? undefined : (cursor ?? undefined);
    const answer = await api.list({ limit: String(PAGE), cursor: from, category });
    if (mine !== load || isClosed) return undefined;
    state.isLoading = false;
    state.failure = answer.ok ? undefined : answer.failure;
    if (!answer.ok) {
      onFailure(answer.failure);
      onChange();
      return undefined;
    }
    cursor = answer.value.nextCursor;
    state.hasMore = cursor !== null;
    count(answer.value.unread);
    return answer.value;
  }

  return {
    fetch: fetchPage,
    close() {
      isClosed = true;
    },
  };
}

/** Of each notification once. */
function once(tell: (notification: InboxNotification) => void): typeof tell {
  const told = new Set<string>();
  return (notification) => {
    if (told.has(notification.id)) return;
    told.add(notification.id);
    tell(notification);
  };
}
