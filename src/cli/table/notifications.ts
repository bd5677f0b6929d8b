// Commands about notifications, asked of a running Carillon.

import type { Command } from "../command.ts";
import { CHANNEL, countOf, PRIORITY, SINCE, STATUS, UNTIL } from "./words.ts";

const ID = [{ name: "ID" }];
const USER = { value: "ID", help: "of this user" };
const PROVIDER = { value: "NAME", help: "of this provider" };
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
    },
    load: async () => (await import("../run/dead.ts")).listDead,
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
