// What the component knows, without the document: the list, the count, the connection, and how they change.
//
// Nothing may fall between the list and the stream. The list is therefore asked for once the stream is open, and again
// whenever the stream could not be resumed; what arrives in the meantime is kept and merged by id. A tab that another
// one feeds listens first and asks for the list then.

import { type Acks, createAcks } from "./acks.ts";
import { createInboxApi, type Failure, type InboxNotification, type Page, type Resume } from "./api.ts";
import type { StreamEvent } from "./event-stream.ts";
import { type Connection, follow } from "./follow.ts";
import { isAfter } from "./position.ts";
import { type Share, share } from "./share.ts";

export type InboxState = {
  /** The newest first. */
  items: InboxNotification[];
  unread: number;
  hasMore: boolean;
  /** At least one page has come. */
  isLoaded: boolean;
  isLoading: boolean;
  failure: Failure | undefined;
  /** A change could not be saved. */
  isUnsaved: boolean;
  connection: Connection;
};

export const emptyInbox = (): InboxState => ({
  items: [],
  unread: 0,
  hasMore: false,
  isLoaded: false,
  isLoading: false,
  failure: undefined,
  isUnsaved: false,
  connection: "connecting",
});

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

/** What tabs tell each other. */
type Message =
  | { kind: "event"; event: StreamEvent }
  | { kind: "connection"; connection: Connection; isResumed: boolean }
  | { kind: "marked"; verb: "read" | "archive" | "read-all"; ids: string[] }
  | { kind: "hello" };

const PAGE = 20;
const RECOUNT_WAIT_MS = 300;
const COUNTED = 100;
/** A stream that does not open in this time must not keep the list from showing. */
const LIST_WAIT_MS = 1_500;

export function openInbox({
  url,
  userId,
  category,
  tenant,
  token,
  onChange,
  onArrival,
  onUnauthorized,
}: InboxOptions): Inbox {
  const api = createInboxApi(url, userId, token);
  const hurry = new EventTarget();
  const state = emptyInbox();
  let cursor: string | null = null;
  let resume: Resume | undefined;
  let isLeading = false;
  let isClosed = false;
  let isRefused = false;
  let timesCounted = 0;
  let load = 0;
  let arrivedSinceLoad: { notification: InboxNotification; at: string | undefined }[] = [];
  /** Up to where the first list reached, and the latest. */
  let firstPosition: string | undefined;
  let position: string | undefined;
  const told = new Set<string>();
  const acks: Acks = createAcks(api);
  const archived = new Set<string>();
  const busy = new Set<string>();
  let recounting: ReturnType<typeof setTimeout> | undefined;
  let others = join();

  function join(): Share<Message> {
    return share<Message>({
      name: JSON.stringify(["carillon-inbox", new URL(url || "/", location.href).href, tenant, userId]),
      lead,
      onFollow() {
        others.tell({ kind: "hello" });
        void reload("resumed");
      },
      onMessage,
    });
  }

  async function lead(signal: AbortSignal): Promise<void> {
    isLeading = true;
    const list = setTimeout(() => !state.isLoaded && !state.isLoading && reload("resumed"), LIST_WAIT_MS);
    try {
      // A refusal of a token that has been replaced meanwhile says nothing about the new one.
      do {
        await follow({
          open: api.stream,
          resume: () => resume,
          onEvent(event) {
            others.tell({ kind: "event", event });
            onEvent(event);
          },
          onConnection(connection, isResumed) {
            others.tell({ kind: "connection", connection, isResumed });
            onConnection(connection, isResumed);
          },
          signal,
          hurry,
        });
      } while (!signal.aborted && api.usedToken() !== token());
    } finally {
      clearTimeout(list);
      isLeading = false;
    }
  }

  function onMessage(message: Message): void {
    if (message.kind === "event") onEvent(message.event);
    else if (message.kind === "marked") applyMark(message.verb, message.ids);
    else if (message.kind === "hello") {
      if (isLeading) others.tell({ kind: "connection", connection: state.connection, isResumed: true });
    } else if (message.connection !== "unauthorized") {
      // Another tab's token is its own affair.
      onConnection(message.connection, message.isResumed);
    }
  }

  function onConnection(connection: Connection, isResumed: boolean): void {
    if (connection === "unauthorized") unauthorized();
    else if (connection === "open" ? !isResumed || state.failure : !state.isLoaded && connection !== "connecting") {
      void reload(isResumed ? "resumed" : "anew");
    }
    if (connection === "open") acks.send();
    state.connection = connection;
    onChange();
  }

  function onEvent({ name, data, id }: StreamEvent): void {
    if (id !== undefined) resume = id === "" ? undefined : { lastEventId: id };
    if (name === "reset") {
      if (id === undefined) resume = undefined;
      void reload("anew");
    } else if (name === "unread") {
      const count = parsed(data);
      if (typeof count === "number") setUnread(count);
      onChange();
    } else if (name === "notification") {
      const notification = parsed(data);
      if (isNotification(notification)) arrive(notification, id);
    }
  }

  /**
   * A stream that goes on where it stopped also tells what a list that was loaded meanwhile reached already: such a one is
   * in its place, or will be when its page is loaded. What the first list reached was there before us and is no arrival.
   */
  function arrive(notification: InboxNotification, at: string | undefined): void {
    const { id } = notification;
    if (archived.has(id) || (category !== undefined && notification.category !== category)) return;
    const isListed = state.items.some((item) => item.id === id);
    if (!isListed && isAfter(at, position)) {
      state.items.unshift(notification);
      arrivedSinceLoad.unshift({ notification, at });
    }
    if (isAfter(at, firstPosition)) tell(notification);
    onChange();
  }

  function tell(notification: InboxNotification): void {
    if (told.has(notification.id)) return;
    told.add(notification.id);
    onArrival(notification);
  }

  async function fetchPage(from: string | undefined): Promise<Page | undefined> {
    const mine = ++load;
    state.isLoading = true;
    onChange();
    const countedBefore = timesCounted;
    const answer = await api.list({ limit: String(PAGE), cursor: from, category });
    if (mine !== load || isClosed) return undefined;
    state.isLoading = false;
    state.failure = answer.ok ? undefined : answer.failure;
    if (!answer.ok) {
      if (answer.failure === "unauthorized") unauthorized();
      onChange();
      return undefined;
    }
    cursor = answer.value.nextCursor;
    state.hasMore = cursor !== null;
    countUnless(countedBefore, answer.value.unread);
    return answer.value;
  }

  /** Where the stream is resumed, it tells what came meanwhile. Where it begins anew, the list is all there is. */
  async function reload(stream: "resumed" | "anew"): Promise<void> {
    arrivedSinceLoad = [];
    const page = await fetchPage(undefined);
    if (!page) return;
    position = page.position;
    resume ??= { after: page.position };
    const known = new Set(state.items.map(({ id }) => id));
    const newestAt = state.items[0]?.createdAt ?? "";
    const missed = page.data.filter(({ id, createdAt, readAt }) => !known.has(id) && !readAt && createdAt >= newestAt);
    const arrived = arrivedSinceLoad.filter(({ at }) => isAfter(at, position)).map(({ notification }) => notification);
    state.items = [...arrived, ...page.data].filter(({ id }) => !archived.has(id));
    onChange();
    // The oldest first.
    if (state.isLoaded && stream === "anew") for (const notification of missed.reverse()) tell(notification);
    firstPosition ??= position;
    state.isLoaded = true;
  }

  async function more(): Promise<void> {
    if (cursor === null || state.isLoading) return;
    const page = await fetchPage(cursor);
    if (!page) return;
    const known = new Set(state.items.map(({ id }) => id));
    state.items.push(...page.data.filter(({ id }) => !known.has(id) && !archived.has(id)));
    onChange();
  }

  /** The server counts all categories together. For one of them, as many are asked for as the badge can tell. */
  function setUnread(count: number): void {
    timesCounted++;
    if (category === undefined) state.unread = count;
    else {
      clearTimeout(recounting);
      recounting = setTimeout(async () => {
        const answer = await api.list({ limit: String(COUNTED), unread: "true", category });
        if (!answer.ok || isClosed) return;
        state.unread = answer.value.data.length;
        onChange();
      }, RECOUNT_WAIT_MS);
    }
  }

  /** The stream tells the count too. What it told since an answer was asked for stands, or a newer count is to come. */
  function countUnless(countedBefore: number, count: number): void {
    if (countedBefore === timesCounted) setUnread(count);
  }

  /** Nothing is shown as done before the server has it: there is nothing to take back then. */
  async function mark(verb: "read" | "archive" | "read-all", ids: string[]): Promise<void> {
    const wanted = ids.filter((id) => !busy.has(id));
    if (wanted.length === 0 && verb !== "read-all") return;
    for (const id of wanted) busy.add(id);
    const body = verb !== "read-all" ? { ids: wanted } : category === undefined ? {} : { category };
    const countedBefore = timesCounted;
    const answer = await api.mark(verb, body);
    for (const id of wanted) busy.delete(id);
    if (isClosed) return;
    state.isUnsaved = !answer.ok;
    if (answer.ok) {
      const read = state.items.filter(({ id, readAt }) => !readAt && wanted.includes(id)).length;
      others.tell({ kind: "marked", verb, ids: wanted });
      applyMark(verb, wanted);
      const counted = verb === "read-all" ? 0 : Math.max(0, state.unread - read);
      countUnless(countedBefore, answer.value.unread ?? counted);
    } else if (answer.failure === "unauthorized") unauthorized();
    onChange();
  }

  function applyMark(verb: "read" | "archive" | "read-all", ids: string[]): void {
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

  /** The page is asked once per token. */
  function unauthorized(): void {
    state.failure = "unauthorized";
    if (isRefused) return;
    isRefused = true;
    onChange();
    onUnauthorized();
  }

  function refresh(): void {
    state.failure = undefined;
    state.isUnsaved = false;
    isRefused = false;
    if (isLeading) hurry.dispatchEvent(new Event("hurry"));
    else {
      others.stop();
      others = join();
    }
    void reload("resumed");
  }

  const onOnline = () => hurry.dispatchEvent(new Event("hurry"));
  addEventListener("online", onOnline);
  addEventListener("online", onChange);
  addEventListener("offline", onChange);

  return {
    state,
    more,
    read: (ids) => mark("read", ids),
    readAll: () => mark("read-all", []),
    archive: (ids) => mark("archive", ids),
    shown: acks.add,
    refresh,
    close() {
      isClosed = true;
      clearTimeout(recounting);
      others.stop();
      removeEventListener("online", onOnline);
      removeEventListener("online", onChange);
      removeEventListener("offline", onChange);
    },
  };
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
