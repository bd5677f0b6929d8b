// Commands for sources and sinks, asked of a running Carillon.

import type { Command } from "../command.ts";
import { countOf, REASON, SINCE } from "./words.ts";

const NAME = [{ name: "NAME" }];

const pausing: Command[] = (["sources", "sinks"] as const).flatMap((kinds) => [
  {
    name: `${kinds} pause`,
    help: "one stops where it is",
    arguments: NAME,
    options: { reason: REASON },
    load: async () => (await import("../run/connectors.ts")).pauseConnector(kinds),
  },
  {
    name: `${kinds} resume`,
    help: "it goes on",
    arguments: NAME,
    load: async () => (await import("../run/connectors.ts")).resumeConnector(kinds),
  },
]);

export const CONNECTORS: readonly Command[] = [
  {
    name: "sources",
    help: "where requests come from besides HTTP",
    load: async () => (await import("../run/connectors.ts")).listSources,
  },
  {
    name: "sinks",
    help: "where facts go",
    load: async () => (await import("../run/connectors.ts")).listSinks,
  },
  ...pausing,
  {
    name: "sinks replay",
    help: "one is told again what happened",
    arguments: NAME,
    options: { since: { ...SINCE, needed: "say from when on" } },
    load: async () => (await import("../run/connectors.ts")).replaySink,
  },
  {
    name: "sinks forget",
    help: "one that is no longer configured",
    arguments: NAME,
    load: async () => (await import("../run/connectors.ts")).forgetSink,
  },
  {
    name: "refusals",
    help: "what sources and sinks would not have, the latest first",
    options: {
      count: countOf(50),
      kind: { value: "KIND", help: "of this kind", words: ["source", "sink"] },
      name: { value: "NAME", help: "of this one" },
    },
    load: async () => (await import("../run/connectors.ts")).listRefusals,
  },
];
