// What the component shows.

import type { Failure, InboxNotification } from "./api.ts";
import type { Connection } from "./follow.ts";

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
