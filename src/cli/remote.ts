// Commands that ask a running Carillon over HTTP.

import { parseArgs } from "node:util";
import { type Client, createClient } from "#client/client.ts";

export type Remote = { url: string; key: string; print: (line: string) => void };
type Command = (client: Client, key: string, count: number, print: (line: string) => void) => Promise<void>;

/** Undefined where the words are no command; the usage tells which are. */
export const USAGE = `  carillon schedule ls | next KEY [--count N] | pause KEY | resume KEY
  carillon reminder ls | show KEY
  carillon provider ls | test NAME`;

const COMMANDS: { [command: string]: Command } = {
  async "schedule ls"(client, _key, _count, print) {
    for await (const { key, cron, every, timezone, paused, nextAt } of pages((cursor) =>
      client.schedules.list(cursor),
    )) {
      print(columns([key, cron ?? `every ${every}`, timezone ?? "", paused ? "paused" : (nextAt ?? "over")]));
    }
  },
  async "schedule next"(client, key, count, print) {
    for (const at of (await client.schedules.next(key, count)).data) print(at);
  },
  async "schedule pause"(client, key, _count, print) {
    await client.schedules.pause(key);
    print(`${key} is paused`);
  },
  async "schedule resume"(client, key, _count, print) {
    const { nextAt } = await client.schedules.resume(key);
    print(`${key} goes on${nextAt ? `, next at ${nextAt}` : ""}`);
  },
  async "reminder ls"(client, _key, _count, print) {
    for await (const { key, at, offsets, offsetsFrom } of pages((cursor) => client.reminders.list(cursor))) {
      print(columns([key, at, offsets.join(" ") || "no offsets", `(${offsetsFrom})`]));
    }
  },
  async "reminder show"(client, key, _count, print) {
    const { at, offsetsFrom, plan } = await client.reminders.get(key);
    print(`${key} at ${at}, offsets from ${offsetsFrom}`);
    for (const { before, dueAt, status, notificationIds } of plan) {
      print(columns([`  ${before}`, dueAt, status, notificationIds.join(" ")]));
    }
  },
  async "provider ls"(client, _key, _count, print) {
    for (const { name, type, routes, health } of (await client.providers()).data) {
      const state = health ? `${health.healthy ? "healthy" : "UNHEALTHY"}: ${health.detail}` : "";
      print(columns([name, type, routes.join(" ") || "-", state]));
    }
  },
  async "provider test"(client, name, _count, print) {
    const { healthy, detail } = await client.testProvider(name);
    print(`${name}: ${healthy ? "healthy" : "UNHEALTHY"}, ${detail}`);
    if (!healthy) process.exitCode = 1;
  },
};
const NEEDS_KEY = new Set(["provider test", "schedule next", "schedule pause", "schedule resume", "reminder show"]);

/** Undefined when it was done, else what is wrong with the arguments. Throws what the server says. */
export async function runRemote(args: string[], { url, key, print }: Remote): Promise<string | undefined> {
  const { values, positionals } = parseArgs({
    args,
    options: { count: { type: "string", default: "5" } },
    allowPositionals: true,
  });
  const [group, verb, name = "", ...more] = positionals;
  const command = `${group} ${verb}`;
  const ask = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!ask || more.length > 0 || NEEDS_KEY.has(command) !== (name !== "")) {
    return `there is no command ${args.join(" ")}`;
  }
  if (!/^[1-9]\d*$/.test(values.count)) return `--count must be a whole number, not ${values.count}`;
  await ask(createClient({ url, key, maxAttempts: 2 }), name, Number(values.count), print);
  return undefined;
}

/** Every item, page after page. */
async function* pages<Item>(
  ask: (page: { cursor?: string }) => Promise<{ data: Item[]; nextCursor: string | null }>,
): AsyncGenerator<Item> {
  let cursor: string | null = null;
  do {
    const page: { data: Item[]; nextCursor: string | null } = await ask(cursor === null ? {} : { cursor });
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

const WIDTH = 28;
const columns = (cells: string[]): string =>
  cells
    .map((cell) => cell.padEnd(WIDTH))
    .join(" ")
    .trimEnd();
