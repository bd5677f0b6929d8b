// Commands that ask a running Carillon over HTTP.

import { parseArgs } from "node:util";
import { type Client, createClient } from "#client/client.ts";
import { printAudit } from "./audit.ts";
import { CONNECTOR_COMMANDS, CONNECTOR_USAGE, type ConnectorOptions, WITH_CONNECTOR } from "./connectors.ts";
import { ENDPOINT_COMMANDS, ENDPOINT_USAGE, type EndpointOptions, WITH_ENDPOINT } from "./endpoints.ts";
import { EVENT_USAGE, printEvents } from "./events.ts";

export type Remote = { url: string; key: string; print: (line: string) => void };
type Options = EndpointOptions &
  ConnectorOptions & {
    weight: number;
    actor?: string | undefined;
    action?: string | undefined;
    object?: string | undefined;
    types?: string | undefined;
    after?: string | undefined;
    notification?: string | undefined;
    follow?: boolean | undefined;
  };
type Command = (client: Client, key: string, print: (line: string) => void, options: Options) => Promise<void>;

/** Undefined where the words are no command; the usage tells which are. */
export const USAGE = `  carillon schedule ls | next KEY [--count N] | pause KEY | resume KEY
  carillon reminder ls | show KEY
  carillon provider ls | test NAME
  carillon pause channel|provider|tenant NAME --reason TEXT [--until INSTANT]
  carillon resume channel|provider|tenant NAME
  carillon pauses
  carillon tenant ls | weigh NAME --weight 1..100
  carillon users delete ID | export ID
  carillon audit [--count N] [--since INSTANT] [--until INSTANT] [--actor KEY] [--action ACTION] [--object KIND:NAME]
${EVENT_USAGE}
${ENDPOINT_USAGE}
${CONNECTOR_USAGE}`;

const KINDS = ["channel", "provider", "tenant"] as const;

const pausing = (kind: (typeof KINDS)[number]): { [command: string]: Command } => ({
  async [`pause ${kind}`](client, name, print, { reason, until }) {
    const paused = await client.pause(kind, name, { reason, ...(until !== undefined && { until }) });
    print(`${kind} ${name} is paused${paused.until ? ` until ${paused.until}` : ""}`);
  },
  async [`resume ${kind}`](client, name, print) {
    await client.resume(kind, name);
    print(`${kind} ${name} goes on`);
  },
});

const COMMANDS: { [command: string]: Command } = {
  async "schedule ls"(client, _key, print) {
    for await (const { key, cron, every, timezone, paused, nextAt } of pages((cursor) =>
      client.schedules.list(cursor),
    )) {
      print(columns([key, cron ?? `every ${every}`, timezone ?? "", paused ? "paused" : (nextAt ?? "over")]));
    }
  },
  async "schedule next"(client, key, print, { count = 5 }) {
    for (const at of (await client.schedules.next(key, count)).data) print(at);
  },
  async "schedule pause"(client, key, print) {
    await client.schedules.pause(key);
    print(`${key} is paused`);
  },
  async "schedule resume"(client, key, print) {
    const { nextAt } = await client.schedules.resume(key);
    print(`${key} goes on${nextAt ? `, next at ${nextAt}` : ""}`);
  },
  async "reminder ls"(client, _key, print) {
    for await (const { key, at, offsets, offsetsFrom } of pages((cursor) => client.reminders.list(cursor))) {
      print(columns([key, at, offsets.join(" ") || "no offsets", `(${offsetsFrom})`]));
    }
  },
  async "reminder show"(client, key, print) {
    const { at, offsetsFrom, plan } = await client.reminders.get(key);
    print(`${key} at ${at}, offsets from ${offsetsFrom}`);
    for (const { before, dueAt, status, notificationIds } of plan) {
      print(columns([`  ${before}`, dueAt, status, notificationIds.join(" ")]));
    }
  },
  async "provider ls"(client, _key, print) {
    for (const { name, type, routes, health } of (await client.providers()).data) {
      const state = health ? `${health.healthy ? "healthy" : "UNHEALTHY"}: ${health.detail}` : "";
      print(columns([name, type, routes.join(" ") || "-", state]));
    }
  },
  async "provider test"(client, name, print) {
    const { healthy, detail } = await client.testProvider(name);
    print(`${name}: ${healthy ? "healthy" : "UNHEALTHY"}, ${detail}`);
    if (!healthy) process.exitCode = 1;
  },
  ...pausing("channel"),
  ...pausing("provider"),
  ...pausing("tenant"),
  async pauses(client, _key, print) {
    for (const { kind, name, tenant, pausedAt, until, reason } of (await client.pauses()).data) {
      const what = `${kind} ${name}${tenant === undefined ? "" : ` of ${tenant}`}`;
      print(columns([what, `since ${pausedAt}`, until ? `until ${until}` : "", reason]));
    }
  },
  async "tenant ls"(client, _key, print) {
    for await (const { name, weight, createdAt } of pages((cursor) => client.tenants.list(cursor))) {
      print(columns([name, `weight ${weight}`, createdAt]));
    }
  },
  async "tenant weigh"(client, name, print, { weight }) {
    print(`${name} has weight ${(await client.tenants.weigh(name, weight)).weight}`);
  },
  ...ENDPOINT_COMMANDS,
  ...CONNECTOR_COMMANDS,
  async "users delete"(client, userId, print) {
    const { state, requestedAt } = await client.users.delete(userId);
    print(`${userId} is being forgotten, as asked at ${requestedAt}: ${state}`);
  },
  async "users export"(client, userId, print) {
    for await (const known of client.users.export(userId)) print(JSON.stringify(known));
  },
  async audit(client, _key, print, { count = 50, since, until, actor, action, object }) {
    await printAudit(client, print, definedOf({ since, until, actor, action, object }), count);
  },
  async events(client, _key, print, { types, since, after, notification, count, follow }) {
    const filters = { ...definedOf({ since, after, notification }), ...(types && { types: types.split(",") }) };
    await printEvents(client, print, filters, follow ? "follow" : (count ?? 100));
  },
};
const NEEDS_KEY = new Set([
  ...[
    "provider test",
    "schedule next",
    "schedule pause",
    "schedule resume",
    "reminder show",
    "tenant weigh",
    "users delete",
    "users export",
  ],
  ...KINDS.flatMap((kind) => [`pause ${kind}`, `resume ${kind}`]),
  ...WITH_ENDPOINT,
  ...WITH_CONNECTOR,
]);
const NEEDS_REASON = new Set([
  ...KINDS.map((kind) => `pause ${kind}`),
  ...["endpoint pause", "sources pause", "sinks pause"],
]);
const NEEDS_SINCE = new Set(["endpoint replay", "sinks replay"]);
/** What such commands begin with. */
export const REMOTE: ReadonlySet<string> = new Set(
  Object.keys(COMMANDS).map((command) => command.split(" ", 1).join()),
);

/** Undefined when it was done, else what is wrong with the arguments. Throws what the server says. */
export async function runRemote(args: string[], { url, key, print }: Remote): Promise<string | undefined> {
  const { values, positionals } = parseArgs({
    args,
    options: {
      count: { type: "string" },
      weight: { type: "string" },
      reason: { type: "string" },
      since: { type: "string" },
      until: { type: "string" },
      actor: { type: "string" },
      action: { type: "string" },
      object: { type: "string" },
      url: { type: "string" },
      events: { type: "string" },
      policy: { type: "string" },
      fifo: { type: "string" },
      endpoint: { type: "string" },
      kind: { type: "string" },
      name: { type: "string" },
      types: { type: "string" },
      after: { type: "string" },
      notification: { type: "string" },
      follow: { type: "boolean" },
    },
    allowPositionals: true,
  });
  const [group, verb, name = "", ...more] = positionals;
  const command = [group, verb].filter((word) => word !== undefined).join(" ");
  const ask = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!ask || more.length > 0 || NEEDS_KEY.has(command) !== (name !== "")) {
    return `there is no command ${args.join(" ")}`;
  }
  const { count, weight = "", reason = "", ...said } = values;
  if (count !== undefined && !/^[1-9]\d*$/.test(count)) return `--count must be a whole number, not ${count}`;
  if (NEEDS_REASON.has(command) && reason === "") return "say why: --reason TEXT";
  if (command === "tenant weigh" && !/^\d+$/.test(weight)) return "say how much: --weight 1..100";
  if (NEEDS_SINCE.has(command) && !said.since) return "say from when on: --since INSTANT";
  const options = { ...said, reason, count: count === undefined ? undefined : Number(count), weight: Number(weight) };
  await ask(createClient({ url, key, maxAttempts: 2 }), name, print, options);
  return undefined;
}

const definedOf = (fields: { [name: string]: string | undefined }): { [name: string]: string } =>
  Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined));

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
