// The command line's part for sources and sinks: `carillon sources …`, `carillon sinks …` and `carillon refusals`.

import type { Refusal, RefusalFilters, SinkState, SourceState } from "#client/client.ts";
import type { Run } from "../command.ts";
import { definedOf, listed, readAll, said } from "./lines.ts";

export const listSources: Run = async (_call, world) => {
  const { data } = await (await world.client()).sources.list();
  return listed(data, (source) => {
    const { messages } = source.lag;
    const places = source.offsets.map(
      ({ topic, partition, next, waiting }) =>
        `  ${topic} ${partition}: next ${next}${waiting === undefined ? "" : `, ${waiting} waiting`}`,
    );
    return [lineOf(source, messages === undefined ? "" : `${messages} waiting`), ...places];
  });
};

export const listSinks: Run = async (_call, world) => {
  const { data } = await (await world.client()).sinks.list();
  return listed(data, (sink) => {
    const { ms, facts } = sink.lag;
    return lineOf(sink, facts === 0 ? "up to date" : `${facts} facts and ${Math.round(ms / 1_000)} s behind`);
  });
};

export const pauseConnector =
  (kinds: "sources" | "sinks"): Run =>
  async ({ args: [name = ""], options: { reason = "" } }, world) =>
    said(`${name} is paused`, await (await world.client())[kinds].pause(name, reason));

export const resumeConnector =
  (kinds: "sources" | "sinks"): Run =>
  async ({ args: [name = ""] }, world) => {
    const resumed = await (await world.client())[kinds].resume(name);
    return said(`${name} goes on: ${resumed.state}`, resumed);
  };

export const replaySink: Run = async ({ args: [name = ""], options: { since = "" } }, world) => {
  const replay = await (await world.client()).sinks.replay(name, since);
  const { next, moved } = replay;
  const text = moved
    ? `${name} is told again from ${next} on`
    : `${name} has not come as far as that: it stays at ${next}`;
  return said(text, replay);
};

export const forgetSink: Run = async ({ args: [name = ""] }, world) => {
  await (await world.client()).sinks.forget(name);
  return said(`${name} is forgotten`, { name, forgotten: true });
};

export const listRefusals: Run = async ({ options: { count = "50", kind, name } }, world) => {
  const { refusals } = await world.client();
  // Words that the server does not know it refuses itself.
  const filters = definedOf({ kind, name }) as RefusalFilters;
  return listed(await readAll((page) => refusals.list({ ...filters, ...page }), Number(count)), refusalLine);
};

function refusalLine({ at, tenant = "-", code, errors, place, kind, name }: Refusal): string {
  const why = errors.map(({ path, message }) => `${path} ${message}`.trim()).join("; ");
  return [at, `${kind} ${name}`, tenant, place, code, why].join("  ");
}

function lineOf(connector: SourceState | SinkState, lag: string): string {
  const { name, type, configured, state, since, reason, error, carried, refused } = connector;
  const why = [reason, error].filter((word) => word !== undefined).join("; ");
  const how = `${state}${since === undefined ? "" : ` since ${since}`}${why === "" ? "" : `: ${why}`}`;
  const counts = `${carried} carried, ${refused} refused`;
  return [name, type, how, counts, lag, configured ? "" : "not configured here"]
    .filter((cell) => cell !== "")
    .join("  ");
}
