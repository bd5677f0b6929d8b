// The command line's part for sources and sinks: `carillon sources …`, `carillon sinks …` and `carillon refusals`.

import type { Client, RefusalFilters, SinkState, SourceState } from "#client/client.ts";

export const CONNECTOR_USAGE = `  carillon sources | sinks
  carillon sources|sinks pause NAME --reason TEXT
  carillon sources|sinks resume NAME
  carillon sinks replay NAME --since INSTANT
  carillon sinks forget NAME
  carillon refusals [--count N] [--kind source|sink] [--name NAME]`;

export type ConnectorOptions = {
  count: number | undefined;
  reason: string;
  since?: string | undefined;
  kind?: string | undefined;
  name?: string | undefined;
};
type Print = (line: string) => void;
type Command = (client: Client, name: string, print: Print, options: ConnectorOptions) => Promise<void>;

const pausing = (kinds: "sources" | "sinks"): { [command: string]: Command } => ({
  async [`${kinds} pause`](client, name, print, { reason }) {
    await client[kinds].pause(name, reason);
    print(`${name} is paused`);
  },
  async [`${kinds} resume`](client, name, print) {
    const { state } = await client[kinds].resume(name);
    print(`${name} goes on: ${state}`);
  },
});

export const CONNECTOR_COMMANDS: { [command: string]: Command } = {
  async sources(client, _name, print) {
    for (const source of (await client.sources.list()).data) {
      const { messages } = source.lag;
      print(lineOf(source, messages === undefined ? "" : `${messages} waiting`));
      for (const { topic, partition, next, waiting } of source.offsets)
        print(`  ${topic} ${partition}: next ${next}${waiting === undefined ? "" : `, ${waiting} waiting`}`);
    }
  },
  async sinks(client, _name, print) {
    for (const sink of (await client.sinks.list()).data) {
      const { ms, facts } = sink.lag;
      print(lineOf(sink, facts === 0 ? "up to date" : `${facts} facts and ${Math.round(ms / 1_000)} s behind`));
    }
  },
  ...pausing("sources"),
  ...pausing("sinks"),
  async "sinks replay"(client, name, print, { since = "" }) {
    const { next, moved } = await client.sinks.replay(name, since);
    print(moved ? `${name} is told again from ${next} on` : `${name} has not come as far as that: it stays at ${next}`);
  },
  async "sinks forget"(client, name, print) {
    await client.sinks.forget(name);
    print(`${name} is forgotten`);
  },
  async refusals(client, _name, print, { count = 50, kind, name }) {
    // Words that the server does not know it refuses itself.
    const filters = { ...(kind && { kind }), ...(name && { name }) } as RefusalFilters;
    let left = count;
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<Client["refusals"]["list"]>> = await client.refusals.list({
        ...filters,
        limit: Math.min(left, 200),
        ...(cursor !== null && { cursor }),
      });
      for (const { at, tenant = "-", code, errors, place, ...by } of page.data) {
        const why = errors.map(({ path, message }) => `${path} ${message}`.trim()).join("; ");
        print([at, `${by.kind} ${by.name}`, tenant, place, code, why].join("  "));
      }
      left -= page.data.length;
      cursor = page.nextCursor;
    } while (cursor !== null && left > 0);
  },
};

/** Those that are about one of them. */
export const WITH_CONNECTOR = Object.keys(CONNECTOR_COMMANDS).filter((command) => command.includes(" "));

function lineOf(connector: SourceState | SinkState, lag: string): string {
  const { name, type, configured, state, since, reason, error, carried, refused } = connector;
  const why = [reason, error].filter((word) => word !== undefined).join("; ");
  const how = `${state}${since === undefined ? "" : ` since ${since}`}${why === "" ? "" : `: ${why}`}`;
  const counts = `${carried} carried, ${refused} refused`;
  return [name, type, how, counts, lag, configured ? "" : "not configured here"]
    .filter((cell) => cell !== "")
    .join("  ");
}
