// Commands for what was archived. They go to the archive themselves.

import type { Command } from "../command.ts";

export const ARCHIVE: readonly Command[] = [
  {
    name: "archive ls",
    help: "what there is",
    load: async () => (await import("../run/archive.ts")).listArchives,
  },
  {
    name: "archive get",
    help: "a notification with its events, as it was archived last, as JSON",
    arguments: [{ name: "ID" }],
    load: async () => (await import("../run/archive.ts")).getArchived,
  },
  {
    name: "archive verify",
    help: "read every byte and compare",
    arguments: [{ name: "WEEK|NAME", isOptional: true }],
    load: async () => (await import("../run/archive.ts")).verifyArchives,
  },
  {
    name: "archive restore",
    help: "bring back into the database, for some days",
    arguments: [{ name: "WEEK|NAME|ID" }],
    options: { days: { value: "N", help: "how long it may be read (30)", least: 1 } },
    load: async () => (await import("../run/archive.ts")).restoreArchived,
  },
];
