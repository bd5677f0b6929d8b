// The stream, for all tabs of a browser: one of them leads and has it, and tells the others what it hears. A tab that
// another one feeds listens first and asks for the list then.

import type { InboxApi, Resume } from "./api.ts";
import type { StreamEvent } from "./event-stream.ts";
import { type Connection, follow } from "./follow.ts";
import type { Mark } from "./marks.ts";
import { type Share, share } from "./share.ts";

export type Feed = {
  /** For the other tabs: what the reader did in this one. */
  marked(verb: Mark, ids: string[]): void;
  /** Try now, if we wait. */
  hurry(): void;
  /** Try now in any case: after an error, or with a new token. */
  refresh(): void;
  close(): void;
};

/** What tabs tell each other. */
type Message =
  | { kind: "event"; event: StreamEvent }
  | { kind: "connection"; connection: Connection; isResumed: boolean }
  | { kind: "marked"; verb: Mark; ids: string[] }
  | { kind: "hello" };

export type FeedOptions = {
  /** Tabs of the same name share a stream. */
  name: string;
  api: InboxApi;
  token: () => string | undefined;
  resume: () => Resume | undefined;
  connection: () => Connection;
  onEvent: (event: StreamEvent) => void;
  onConnection: (connection: Connection, isResumed: boolean) => void;
  onMarked: (verb: Mark, ids: string[]) => void;
  /** Another tab leads. */
  onFollow: () => void;
  /** We lead, and the stream takes its time to open. */
  onSlow: () => void;
};

/** A stream that does not open in this time must not keep the list from showing. */
const LIST_WAIT_MS = 1_500;

export function openFeed(options: FeedOptions): Feed {
  const { name, api, token, resume, connection, onEvent, onConnection, onMarked, onFollow, onSlow } = options;
  const hurrying = new EventTarget();
  const hurry = () => void hurrying.dispatchEvent(new Event("hurry"));
  let isLeading = false;
  let others = join();

  function join(): Share<Message> {
    return share<Message>({
      name,
      lead,
      onFollow() {
        others.tell({ kind: "hello" });
        onFollow();
      },
      onMessage,
    });
  }

  async function lead(signal: AbortSignal): Promise<void> {
    isLeading = true;
    const slow = setTimeout(onSlow, LIST_WAIT_MS);
    try {
      // A refusal of a token that has been replaced meanwhile says nothing about the new one.
      do {
        await follow({
          open: api.stream,
          resume,
          onEvent(event) {
            others.tell({ kind: "event", event });
            onEvent(event);
          },
          onConnection(connection, isResumed) {
            others.tell({ kind: "connection", connection, isResumed });
            onConnection(connection, isResumed);
          },
          signal,
          hurry: hurrying,
        });
      } while (!signal.aborted && api.usedToken() !== token());
    } finally {
      clearTimeout(slow);
      isLeading = false;
    }
  }

  function onMessage(message: Message): void {
    if (message.kind === "event") onEvent(message.event);
    else if (message.kind === "marked") onMarked(message.verb, message.ids);
    else if (message.kind === "hello") {
      if (isLeading) others.tell({ kind: "connection", connection: connection(), isResumed: true });
    } else if (message.connection !== "unauthorized") {
      // Another tab's token is its own affair.
      onConnection(message.connection, message.isResumed);
    }
  }

  return {
    marked: (verb, ids) => others.tell({ kind: "marked", verb, ids }),
    hurry,
    refresh() {
      if (isLeading) hurry();
      else {
        others.stop();
        others = join();
      }
    },
    close: () => others.stop(),
  };
}
