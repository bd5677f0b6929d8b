// Commands that run Carillon, or go to its database and files themselves.

import { SCOPES } from "#domain/api-key.ts";
import type { Command, Option } from "../command.ts";

const DATABASE: Option = { help: "past the service, straight in the database; so it is without CARILLON_API_KEY, too" };

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
    name: "doctor",
    help: "what is wrong, and what to do: database, clocks, open transactions, schema, workers, disk, service, providers, queue",
    more: "Looks, and changes nothing. The exit code is 1 where something must be mended.",
    load: async () => (await import("../run/doctor.ts")).doctor,
  },
  {
    name: "backup",
    help: "copy the embedded database into a new directory, while it runs",
    arguments: [{ name: "DIRECTORY", isPath: true }],
    more: `The directory must not be there yet; it appears when it is whole. It holds the database's password and all contents: its mode is 0700.
With DATABASE_URL the database is your own: pg_basebackup and pg_dump are for that.`,
    load: async () => (await import("../run/backup.ts")).backup,
  },
  {
    name: "restore",
    help: "make an embedded database of a backup, where there is none",
    arguments: [{ name: "DIRECTORY", isPath: true }],
    options: { check: { help: "compare every byte with its checksum, and make nothing" } },
    load: async () => (await import("../run/backup.ts")).restore,
  },
  {
    name: "admin-key",
    help: "make another admin key, straight in the database: for whoever has lost theirs",
    load: async () => (await import("../run/admin-key.ts")).makeAdminKey,
  },
  {
    name: "key ls",
    help: "keys, without their secrets",
    options: { database: DATABASE },
    load: async () => (await import("../run/keys.ts")).listKeys,
  },
  {
    name: "key make",
    help: "make one, and show it once",
    options: {
      name: { value: "TEXT", help: "what it is for", needed: "say what it is for" },
      scopes: { value: "a,b", help: `some of ${SCOPES.join(", ")}`, needed: "say what it may do" },
      tenant: { value: "NAME", help: "whose it is; a new one is made" },
      expires: { value: "INSTANT", help: "until when it opens" },
      database: DATABASE,
    },
    load: async () => (await import("../run/keys.ts")).makeKey,
  },
  {
    name: "key revoke",
    help: "it opens nothing any more",
    arguments: [{ name: "ID" }],
    options: { database: DATABASE },
    load: async () => (await import("../run/keys.ts")).revokeKey,
  },
];
