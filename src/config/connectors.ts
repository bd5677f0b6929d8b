// The part of the configuration that says where requests come from besides HTTP, and where facts go: sources and sinks, by name.

import type { TSchema } from "typebox";
import { withEnvironment } from "#channels/settings.ts";
import type { Fault } from "#domain/problems.ts";
import { compile } from "#domain/validate.ts";
import { SINKS, type SinkSettings } from "#sinks/settings.ts";
import { SOURCES, type SourceSettings } from "#sources/settings.ts";
import { inWords } from "./channels.ts";
import { misfit, shortly } from "./fault.ts";
import { type Environment, isObject, readObject, type SettingsOf } from "./setting.ts";

export type ConnectorsConfig = {
  sources: { readonly [name: string]: SourceSettings };
  sinks: { readonly [name: string]: SinkSettings };
};

export const CONNECTORS: SettingsOf<ConnectorsConfig> = {
  // Checked more closely by resolveConnectors(), which knows the environment.
  sources: {
    env: "CARILLON_SOURCES",
    expected: "an object of sources, each with a type",
    fallback: {},
    isSecret: true,
    read: (given) => readObject(given) as ConnectorsConfig["sources"] | undefined,
  },
  sinks: {
    env: "CARILLON_SINKS",
    expected: "an object of sinks, each with a type",
    fallback: {},
    isSecret: true,
    read: (given) => readObject(given) as ConnectorsConfig["sinks"] | undefined,
  },
};

/** Both with variables of the environment filled in, and every fault. Values are never shown: many are secrets. */
export function resolveConnectors(
  { sources, sinks }: ConnectorsConfig,
  env: Environment,
): { sources: ConnectorsConfig["sources"]; sinks: ConnectorsConfig["sinks"]; faults: Fault[] } {
  const faults: Fault[] = [];
  return {
    sources: resolve("sources", sources, SOURCES, env, faults),
    sinks: resolve("sinks", sinks, SINKS, env, faults),
    faults,
  };
}

function resolve<Settings extends { type: string }>(
  part: "sources" | "sinks",
  given: { readonly [name: string]: unknown },
  types: { readonly [type: string]: TSchema },
  env: Environment,
  faults: Fault[],
): { readonly [name: string]: Settings } {
  const resolved: { [name: string]: Settings } = {};
  for (const [name, one] of Object.entries(given)) {
    const path = `${part}.${name}`;
    const missing: string[] = [];
    const settings = withEnvironment(one, env, missing);
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name))
      faults.push(misfit(path, "a name of lower-case letters, digits, - and _", shortly(name)));
    for (const variable of missing) faults.push(misfit(path, `the environment variable ${variable}`, "none"));
    if (missing.length > 0) continue;
    const type = isObject(settings) ? String(settings.type) : "";
    const schema = Object.hasOwn(types, type) ? types[type] : undefined;
    if (!schema) {
      faults.push(misfit(`${path}.type`, `one of ${Object.keys(types).join(", ")}`, shortly(type)));
      continue;
    }
    for (const fault of compile(schema)(settings))
      faults.push(inWords(path + fault.path.replaceAll("/", "."), fault.message));
    resolved[name] = Object.freeze(settings as Settings);
  }
  return Object.freeze(resolved);
}
