// Following what happens, and what comes into an inbox.
//
// Who follows is told each once, from a position on. What cannot be told without a gap is said: of facts by the error RESET, of an inbox by
// the event `reset`. Never is it silence.

import { queryOf } from "./bind.ts";
import type { CallOptions } from "./call.ts";
import { CarillonError } from "./error.ts";
import type { EventsListQuery, Fact, InboxFollowQuery, InboxItem } from "./generated.ts";
import type { Follow } from "./stream.ts";

export type FactFilters = Omit<EventsListQuery, "limit">;

/** What comes on the stream of an inbox; after a `reset`, load the list. */
export type InboxEvent =
  | { event: "notification"; position: string; item: InboxItem }
  | { event: "unread"; unread: number }
  | { event: "reset" };

export async function* followFacts(
  follow: Follow,
  filters: FactFilters = {},
  options?: CallOptions,
): AsyncGenerator<Fact, void> {
  for await (const { name, data } of follow(`/v1/events${queryOf(filters)}`, options)) {
    if (name === "reset") throw resetTo(JSON.parse(data).next);
    if (name === "fact") yield JSON.parse(data);
  }
}

export async function* followInbox(
  follow: Follow,
  userId: string,
  query: InboxFollowQuery = {},
  options?: CallOptions,
): AsyncGenerator<InboxEvent, void> {
  const path = `/v1/inbox/${encodeURIComponent(userId)}/stream${queryOf(query)}`;
  for await (const { name, data, id = "" } of follow(path, options)) {
    if (name === "notification") yield { event: name, position: id, item: JSON.parse(data) };
    else if (name === "unread") yield { event: name, unread: Number(data) };
    else if (name === "reset") yield { event: name };
  }
}

const resetTo = (next: string): CarillonError =>
  new CarillonError(410, { code: "RESET", detail: "what follows this position cannot be told without a gap", next });
