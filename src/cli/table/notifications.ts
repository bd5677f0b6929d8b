// Commands about notifications, asked of a running Carillon.

import type { Command } from "../command.ts";
import { CHANNEL, countOf, PRIORITY, SINCE, STATUS, UNTIL } from "./words.ts";

const ID = [{ name: "ID" }];
const USER = { value: "ID", help: "of this user" };
const PROVIDER = { value: "NAME", help: "of this provider" };
const PLAN = [{ name: "PLAN" }];
const RATE = { value: "N", help: "so many a second at most (100)", least: 1 };
const DETACH = { help: "do not wait for it" };
const TYPES = { value: "a,b", help: "facts of these types" };

export const NOTIFICATIONS: readonly Command[] = [
  {
    name: "send",
    help: "send one, and with --wait tell what became of it",
    options: {
      channel: { ...CHANNEL, help: "by which" },
      to: {
        value: "ADDRESS",
        help: "an address, a number, a channel of Slack, a URL, or a user, as the channel has it",
      },
      user: { value: "ID", help: "whose it is" },
      subject: { value: "TEXT", help: "of a mail" },
      title: { value: "TEXT", help: "of a push or an item of an inbox" },
      body: { value: "TEXT", help: "what it says; of a mail its plain text" },
      html: { value: "HTML", help: "a mail's other text" },
      template: { value: "ID", help: "a template instead of a text" },
      variables: { value: "JSON", help: "what the template is filled with" },
      priority: { ...PRIORITY, help: "its lane" },
      at: { value: "INSTANT", help: "not before then" },
      expires: { value: "INSTANT", help: "not after then" },
      "idempotency-key": { value: "KEY", help: "sent twice it is accepted once" },
      file: { value: "PATH", help: "a request as JSON, - for standard input; options go over it", isPath: true },
      wait: { help: "until it has ended" },
      timeout: { value: "SECONDS", help: "with --wait: no longer than that", least: 1 },
    },
    more: "With --wait the exit code is 0 where it was sent or delivered, and 1 where it came to anything else.",
    load: async () => (await import("../run/send.ts")).sendNotification,
  },
  {
    name: "tail",
    help: "what happens, as it happens",
    options: {
      channel: CHANNEL,
      status: STATUS,
      user: USER,
      provider: PROVIDER,
      types: TYPES,
      notification: { value: "ID", help: "of this one" },
      since: SINCE,
      count: { value: "N", help: "stop after so many", least: 1 },
    },
    load: async () => (await import("../run/tail.ts")).tail,
  },
  {
    name: "show",
    help: "one with all that happened to it: attempts, waits, what providers said",
    arguments: ID,
    load: async () => (await import("../run/show.ts")).showNotification,
  },
  {
    name: "top",
    help: "how it goes, on a screen that is drawn again: lanes, rates, workers, providers",
    options: {
      once: { help: "one look, and what changed in a second" },
      every: { value: "SECONDS", help: "how often it is drawn (2)", least: 1 },
    },
    more: "q quits. Where standard output is no terminal it is as with --once; with --json a line for each look.",
    load: async () => (await import("../run/top.ts")).top,
  },
  {
    name: "dead ls",
    help: "those that failed for good, the newest first",
    options: {
      channel: CHANNEL,
      priority: PRIORITY,
      provider: PROVIDER,
      user: USER,
      since: SINCE,
      until: UNTIL,
      count: countOf(50),
      "by-cause": { help: "how many there are of each cause" },
    },
    load: async () => (await import("../run/dead.ts")).listDead,
  },
  {
    name: "dead plan",
    help: "count what would be sent again, what it costs and what is left out; does nothing yet",
    options: {
      channel: CHANNEL,
      priority: PRIORITY,
      provider: PROVIDER,
      user: USER,
      template: { value: "ID", help: "of this template" },
      outcome: { value: "WORD", help: "that ended with this outcome" },
      error: { value: "TEXT", help: "whose error has this in it" },
      cause: { value: "TEXT", help: "of this cause" },
      since: SINCE,
      until: UNTIL,
      ids: { value: "a,b", help: "these, and no others" },
      purge: { help: "to be taken off the list instead of being sent again" },
      rate: RATE,
    },
    load: async () => (await import("../run/plans.ts")).makePlan,
  },
  {
    name: "dead plans",
    help: "plans, the newest first; or one of them",
    arguments: [{ name: "PLAN", isOptional: true }],
    load: async () => (await import("../run/plans.ts")).listPlans,
  },
  {
    name: "dead apply",
    help: "carry a plan out, and show how far it has come",
    arguments: PLAN,
    options: {
      canary: { value: "N", help: "so many first; the rest waits", least: 1 },
      continue: {
        value: "WHEN",
        help: "the rest goes when somebody says so, or when all of the first were sent",
        words: ["confirmed", "sent"],
      },
      rate: RATE,
      yes: { help: "do not ask" },
      detach: DETACH,
    },
    load: async () => (await import("../run/plans.ts")).applyPlan,
  },
  {
    name: "dead continue",
    help: "the rest of a plan that waits after its first",
    arguments: PLAN,
    options: { detach: DETACH },
    load: async () => (await import("../run/plans.ts")).continuePlan,
  },
  {
    name: "dead abort",
    help: "end a plan; once this has answered nothing more of it is done",
    arguments: PLAN,
    load: async () => (await import("../run/plans.ts")).abortPlan,
  },
  {
    name: "events",
    help: "what happened, a line of JSON for each fact",
    options: {
      types: TYPES,
      since: SINCE,
      after: { value: "POSITION", help: "after this one" },
      notification: { value: "ID", help: "of this one" },
      count: countOf(100),
      follow: { help: "as it happens, until Ctrl-C" },
    },
    load: async () => (await import("../run/events.ts")).printEvents,
  },
];
