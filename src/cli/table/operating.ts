// Commands for who runs it, asked of a running Carillon.

import { MOVE_STRATEGIES, PLACES } from "#domain/handoff.ts";
import type { Command } from "../command.ts";
import { countOf, REASON, SINCE, UNTIL } from "./words.ts";

const KINDS = ["channel", "provider", "tenant"] as const;
const KEY = [{ name: "KEY" }];
const NAME = [{ name: "NAME" }];
const NO_WAIT = { help: "do not wait until it is over" };

const pausing: Command[] = KINDS.flatMap((kind) => [
  {
    name: `pause ${kind}`,
    help: `nothing more of a ${kind} begins, and nothing is lost`,
    arguments: NAME,
    options: { reason: REASON, until: { ...UNTIL, help: "when it goes on by itself" } },
    load: async () => (await import("../run/operating.ts")).pause(kind),
  },
  {
    name: `resume ${kind}`,
    help: `a ${kind} goes on`,
    arguments: NAME,
    load: async () => (await import("../run/operating.ts")).resume(kind),
  },
]);

export const OPERATING: readonly Command[] = [
  {
    name: "provider ls",
    help: "providers, their routes and their health",
    load: async () => (await import("../run/operating.ts")).listProviders,
  },
  {
    name: "provider test",
    help: "whether one can be reached with its credentials; sends nothing",
    arguments: NAME,
    load: async () => (await import("../run/operating.ts")).testProvider,
  },
  ...pausing,
  { name: "queue show", help: "what waits, and where", load: async () => (await import("../run/queue.ts")).showQueue },
  {
    name: "queue migrate",
    help: "move ready work to another engine, and show how far it has come",
    options: {
      to: { value: "ENGINE", help: "where to", words: PLACES, needed: "say where to" },
      strategy: { value: "WAY", help: "live-forward unless it is said", words: MOVE_STRATEGIES },
      "no-wait": NO_WAIT,
    },
    more: "Broken off, it goes on without you: carillon queue show tells how it stands, carillon queue abort goes back.",
    load: async () => (await import("../run/queue.ts")).migrateQueue,
  },
  {
    name: "queue abort",
    help: "go back to where ready work waited before",
    options: { "no-wait": NO_WAIT },
    load: async () => (await import("../run/queue.ts")).abortMigration,
  },
  { name: "pauses", help: "what is paused", load: async () => (await import("../run/operating.ts")).listPauses },
  { name: "tenant ls", help: "tenants", load: async () => (await import("../run/operating.ts")).listTenants },
  {
    name: "tenant weigh",
    help: "its turns within a lane, beside those of others",
    arguments: NAME,
    options: { weight: { value: "1..100", help: "how many turns", least: 0, needed: "say how much" } },
    load: async () => (await import("../run/operating.ts")).weighTenant,
  },
  {
    name: "users delete",
    help: "forget a person",
    arguments: [{ name: "ID" }],
    load: async () => (await import("../run/operating.ts")).deleteUser,
  },
  {
    name: "users export",
    help: "all that is known of a person, a line of JSON each",
    arguments: [{ name: "ID" }],
    load: async () => (await import("../run/operating.ts")).exportUser,
  },
  {
    name: "audit",
    help: "who did what, the newest first",
    options: {
      count: countOf(50),
      since: SINCE,
      until: UNTIL,
      actor: { value: "KEY", help: "by a key's id or name" },
      action: { value: "ACTION", help: "such as key.create" },
      object: { value: "KIND:NAME", help: "to this, or to all of a kind" },
    },
    load: async () => (await import("../run/audit.ts")).listAudit,
  },
];

export const PLANNED: readonly Command[] = [
  { name: "schedule ls", help: "schedules", load: async () => (await import("../run/schedules.ts")).listSchedules },
  {
    name: "schedule next",
    help: "when one fires next",
    arguments: KEY,
    options: { count: countOf(5) },
    load: async () => (await import("../run/schedules.ts")).listInstants,
  },
  {
    name: "schedule pause",
    help: "a schedule fires no more",
    arguments: KEY,
    load: async () => (await import("../run/schedules.ts")).pauseSchedule,
  },
  {
    name: "schedule resume",
    help: "a schedule goes on",
    arguments: KEY,
    load: async () => (await import("../run/schedules.ts")).resumeSchedule,
  },
  { name: "reminder ls", help: "reminders", load: async () => (await import("../run/schedules.ts")).listReminders },
  {
    name: "reminder show",
    help: "one with its plan",
    arguments: KEY,
    load: async () => (await import("../run/schedules.ts")).showReminder,
  },
];
