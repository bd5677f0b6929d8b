// All pages, in the order of the menu. A new one is one more entry here.

import { DeadLetters } from "./dead-letters.ts";
import { Endpoints } from "./endpoints.ts";
import { House } from "./house.ts";
import type { VNode } from "./html.ts";
import { Keys } from "./keys.ts";
import { Mailbox } from "./mailbox.ts";
import { Messages } from "./messages.ts";
import { Overview } from "./overview.ts";
import { Plans } from "./plans.ts";
import { Providers } from "./providers.ts";
import type { Place } from "./route.ts";
import { Schedules } from "./schedules.ts";
import type { Scope } from "./session.ts";
import { Templates } from "./templates.ts";
import { Users } from "./users.ts";

export type PageProps = { place: Place };
export type PageEntry = {
  /** Behind `#/`. */
  page: string;
  title: string;
  group: "Traffic" | "Content" | "Delivery" | "House";
  /** After g. */
  shortcut: string;
  needs: Scope;
  View: (props: PageProps) => VNode;
};

export const PAGES: readonly PageEntry[] = [
  { page: "", title: "Overview", group: "Traffic", shortcut: "o", needs: "read", View: Overview },
  { page: "messages", title: "Messages", group: "Traffic", shortcut: "m", needs: "read", View: Messages },
  { page: "dead-letters", title: "Dead letters", group: "Traffic", shortcut: "d", needs: "read", View: DeadLetters },
  { page: "plans", title: "Plans", group: "Traffic", shortcut: "a", needs: "read", View: Plans },
  { page: "mailbox", title: "Mailbox", group: "Traffic", shortcut: "b", needs: "read", View: Mailbox },
  { page: "schedules", title: "Schedules", group: "Content", shortcut: "s", needs: "read", View: Schedules },
  { page: "templates", title: "Templates", group: "Content", shortcut: "t", needs: "read", View: Templates },
  { page: "users", title: "Users", group: "Content", shortcut: "u", needs: "read", View: Users },
  { page: "providers", title: "Providers", group: "Delivery", shortcut: "p", needs: "read", View: Providers },
  { page: "endpoints", title: "Endpoints", group: "Delivery", shortcut: "e", needs: "read", View: Endpoints },
  { page: "house", title: "Workers and database", group: "House", shortcut: "w", needs: "read", View: House },
  { page: "keys", title: "Keys and audit", group: "House", shortcut: "k", needs: "admin", View: Keys },
];
