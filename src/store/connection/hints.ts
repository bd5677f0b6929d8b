// What one process tells the others, so that they look at once. Each may be lost; looking is the truth.

import type { Lanes } from "#domain/priority.ts";
import { tellOfClock } from "./clock-hint.ts";
import type { Queryable } from "./database.ts";
import { createDueHint, createReadyHint } from "./hint.ts";
import { createInboxHint, type InboxHint } from "./inbox-hint.ts";
import { createMailboxHint, type MailboxHint } from "./mailbox-hint.ts";

export type Hints = {
  /** Something may be claimed. */
  ready: (lanes?: Lanes) => void;
  /** Something was planned, for that instant of the database's clock. */
  due: (dueMs: number) => void;
  /** Something changed in these inboxes. */
  inboxes: InboxHint;
  /** Something was kept in the mailboxes of these tenants. */
  mailboxes: MailboxHint;
  /** The clock was moved. */
  clock: () => Promise<void>;
};

export const createHints = (db: Queryable): Hints => ({
  ready: createReadyHint(db),
  due: createDueHint(db),
  inboxes: createInboxHint(db),
  mailboxes: createMailboxHint(db),
  clock: () => tellOfClock(db),
});
