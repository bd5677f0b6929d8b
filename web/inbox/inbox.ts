// What the component knows, without the document: the list, the count, the connection, and how they change.
//
// Nothing may fall between the list and the stream. The list is therefore asked for once the stream is open, and again
// whenever the stream could not be resumed; what arrives in the meantime is kept and merged by id.

import { createAcks } from "./acks.ts";
import { createInboxApi, type Failure, type InboxNotification, type Resume } from "./api.ts";
import type { StreamEvent } from "./event-stream.ts";
import { openFeed } from "./feed.ts";
import type { Connection } from "./follow.ts";
import { createList } from "./list.ts";
import { createMarks } from "./marks.ts";
import { emptyInbox, type InboxState } from "./state.ts";
import { createUnread } from "./unread.ts";

export type InboxOptions = {
  url: string;
  userId: string;
  category: string | undefined;
  /** Whatever tells users of the same id apart: they must not share a stream. */
  tenant: string;
  token: () => string | undefined;
  onChange: () => void;
  onArrival: (notification: InboxNotification) => void;
  onUnauthorized: () => void;
};

export type Inbox = {
  readonly state: InboxState;
  more(): Promise<void>;
  read(ids: string[]): Promise<void>;
  readAll(): Promise<void>;
  archive(ids: string[]): Promise<void>;
  /** They have been on the screen: the server may call them delivered. */
  shown(ids: string[]): void;
  /** Try now: after an error, or with a new token. */
  refresh(): void;
  close(): void;
};

export function openInbox({ url, userId, category, tenant, token, ...page }: InboxOptions): Inbox {
  const { onChange, onArrival } = page;
  const api = createInboxApi(url, userId, token);
  const state = emptyInbox();
  const refusals = createRefusals(state, page);
  const shared = { api, category, onChange, onFailure: refusals.hear };
  let resume: Resume | undefined;
  const acks = createAcks(api);
  const unread = createUnread(state, shared);
  const marks = createMarks(state, { ...shared, unread, onMarked: (verb, ids) => feed.marked(verb, ids) });
  const list = createList(state, {
    ...shared,
    unread,
    isArchived: marks.isArchived,
    onArrival,
    onPosition(position) {
      resume ??= { after: position };
    },
  });

  function onConnection(connection: Connection, isResumed: boolean): void {
    if (connection === "unauthorized") refusals.hear("unauthorized");
    else if (connection === "open" ? !isResumed || state.failure : !state.isLoaded && connection !== "connecting") {
      void list.reload(isResumed ? "resumed" : "anew");
    }
    if (connection === "open") acks.send();
    state.connection = connection;
    onChange();
  }

  function onEvent({ name, data, id }: StreamEvent): void {
    if (id !== undefined) resume = id === "" ? undefined : { lastEventId: id };
    if (name === "reset") {
      if (id === undefined) resume = undefined;
      void list.reload("anew");
    } else if (name === "unread") {
      const count = parsed(data);
      if (typeof count === "number") unread.told(count);
      onChange();
    } else if (name === "notification") {
      const notification = parsed(data);
      if (isNotification(notification)) list.arrive(notification, id);
    }
  }

  const feed = openFeed({
    name: JSON.stringify(["carillon-inbox", new URL(url || "/", location.href).href, tenant, userId]),
    api,
    token,
    resume: () => resume,
    connection: () => state.connection,
    onEvent,
    onConnection,
    onMarked: marks.apply,
    onFollow: () => void list.reload("resumed"),
    onSlow() {
      if (!state.isLoaded && !state.isLoading) void list.reload("resumed");
    },
  });
  const unwatch = watchNetwork(feed.hurry, onChange);

  return {
    state,
    more: list.more,
    read: (ids) => marks.mark("read", ids),
    readAll: () => marks.mark("read-all", []),
    archive: (ids) => marks.mark("archive", ids),
    shown: acks.add,
    refresh() {
      state.isUnsaved = false;
      refusals.forget();
      feed.refresh();
      void list.reload("resumed");
    },
    close() {
      for (const part of [list, marks, unread, feed]) part.close();
      unwatch();
    },
  };
}

/** The page is asked for a token once per token. */
function createRefusals(
  state: InboxState,
  { onChange, onUnauthorized }: Pick<InboxOptions, "onChange" | "onUnauthorized">,
) {
  let isRefused = false;
  return {
    hear(failure: Failure): void {
      if (failure !== "unauthorized") return;
      state.failure = failure;
      if (isRefused) return;
      isRefused = true;
      onChange();
      onUnauthorized();
    },
    forget(): void {
      state.failure = undefined;
      isRefused = false;
    },
  };
}

function watchNetwork(hurry: () => void, onChange: () => void): () => void {
  const watching = new AbortController();
  const { signal } = watching;
  addEventListener("online", hurry, { signal });
  addEventListener("online", onChange, { signal });
  addEventListener("offline", onChange, { signal });
  return () => watching.abort();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is { [name: string]: unknown } => typeof value === "object" && value !== null;
const isNotification = (value: unknown): value is InboxNotification =>
  isRecord(value) && typeof value.id === "string" && typeof value.createdAt === "string";
