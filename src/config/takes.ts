// The part of the configuration that says what this worker takes. Without it, everything.

import { CHANNELS } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { Fault } from "#domain/problems.ts";
import type { WorkerTakes } from "#domain/worker-takes.ts";
import { misfit, shortly } from "./fault.ts";
import { isObject, readList, readSome, type SettingsOf } from "./setting.ts";

export type TakesConfig = { takes: WorkerTakes };

export const TAKES: SettingsOf<TakesConfig> = {
  takes: {
    env: "CARILLON_TAKES",
    expected: "what is taken, like channels=email,sms;regions=eu;lanes=urgent,high",
    fallback: {},
    // Checked more closely by resolveTakes(), which names each fault at its own key.
    read: (given) => (typeof given === "string" ? parts(given) : isObject(given) ? given : undefined),
  },
};

/** `channels=email,sms;regions=eu`: each part once. */
function parts(text: string): { [name: string]: string } | undefined {
  const named = text
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => /^(\w+) *= *(.*)$/.exec(part));
  const pairs = named.map((match) => [match?.[1] ?? "", match?.[2] ?? ""] as const);
  const isWhole = pairs.length > 0 && pairs.every(([name]) => name !== "");
  return isWhole && new Set(pairs.map(([name]) => name)).size === pairs.length ? Object.fromEntries(pairs) : undefined;
}

function readNames(form: RegExp): (given: unknown) => readonly string[] | undefined {
  return (given) => {
    const names = readList(given);
    if (!names || names.length === 0) return undefined;
    const areFine = names.every((name) => typeof name === "string" && form.test(name));
    return areFine ? Object.freeze([...new Set(names as string[])]) : undefined;
  };
}

const FORMS = {
  lanes: { expected: `a list of ${PRIORITIES.join(", ")}`, read: readSome(PRIORITIES) },
  channels: { expected: `a list of ${CHANNELS.join(", ")}`, read: readSome(CHANNELS) },
  tenants: { expected: "a list of tenants' names", read: readNames(/^[a-z0-9][a-z0-9_-]{0,62}$/) },
  regions: { expected: "a list of regions' names", read: readNames(/^[a-z0-9][a-z0-9_-]{0,63}$/) },
};

/** What is taken with every fault, each at its own key. */
export function resolveTakes(given: { readonly [name: string]: unknown }): { takes: WorkerTakes; faults: Fault[] } {
  const faults: Fault[] = [];
  const takes: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(FORMS, name)) {
      faults.push(misfit(`takes.${name}`, `one of ${Object.keys(FORMS).join(", ")}`, shortly(name)));
      continue;
    }
    const { expected, read } = FORMS[name as keyof typeof FORMS];
    takes[name] = read(value);
    if (takes[name] === undefined) faults.push(misfit(`takes.${name}`, expected, shortly(value)));
  }
  return { takes: Object.freeze(takes) as WorkerTakes, faults };
}
