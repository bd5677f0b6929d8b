// Commands that run Carillon, or go to its database and files themselves.

import type { Command } from "../command.ts";

export const SERVING: readonly Command[] = [
  {
    name: "start",
    help: "run it: all roles, with an embedded PostgreSQL unless DATABASE_URL is set",
    isPlain: true,
    load: async () => (await import("../run/serving.ts")).start,
  },
  {
    name: "check",
    help: "validate the configuration and look whether DATABASE_URL answers, without starting anything",
    load: async () => (await import("../run/serving.ts")).check,
  },
  {
    name: "migrate",
    help: "bring the database schema up to date",
    load: async () => (await import("../run/serving.ts")).migrate,
  },
  {
    name: "admin-key",
    help: "make another admin key, straight in the database: for whoever has lost theirs",
    load: async () => (await import("../run/admin-key.ts")).makeAdminKey,
  },
];
