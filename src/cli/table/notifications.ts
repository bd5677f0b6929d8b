// Commands about notifications, asked of a running Carillon.

import type { Command } from "../command.ts";
import { countOf, SINCE } from "./words.ts";

export const NOTIFICATIONS: readonly Command[] = [
  {
    name: "events",
    help: "what happened, a line of JSON for each fact",
    options: {
      types: { value: "a,b", help: "facts of these types" },
      since: SINCE,
      after: { value: "POSITION", help: "after this one" },
      notification: { value: "ID", help: "of this one" },
      count: countOf(100),
      follow: { help: "as it happens, until Ctrl-C" },
    },
    load: async () => (await import("../run/events.ts")).printEvents,
  },
];
