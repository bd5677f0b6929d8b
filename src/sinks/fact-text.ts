// A short text made of a fact, by Liquid that stands in the configuration: the name of an exchange, a routing key.
//
// The Liquid is the operator's, and is rendered here and now. What it is filled with is a tenant's: how long it becomes is bounded.

import { Liquid, type Template } from "liquidjs";
import { FactBody } from "#domain/fact-body.ts";
import { UnmetNeed } from "#wire/optional.ts";
import type { Told } from "./sink.ts";

export type FactText = (told: Told) => { text: string } | { error: string };

const NAMES = ["tenant", ...Object.keys(FactBody.properties).filter((name) => name !== "position")];

const engine = new Liquid({
  ownPropertyOnly: true,
  strictFilters: true,
  // There are no files to include.
  templates: {},
  timezoneOffset: 0,
  memoryLimit: 100_000,
});

/** Throws where it can never be rendered. `called` is what people know it by. */
export function readFactText(called: string, source: string, mostBytes: number): FactText {
  const parsed = parse(called, source);
  if (!source.includes("{")) return () => ({ text: source });
  // What is simplest is most common.
  const alone = /^\{\{ *(type|tenant) *\}\}$/.exec(source)?.[1];
  return ({ tenant, body }) => {
    try {
      const filled =
        alone === undefined ? engine.renderSync(parsed, { ...body, tenant }) : alone === "type" ? body.type : tenant;
      const text = String(filled).toWellFormed();
      const bytes = Buffer.byteLength(text);
      return bytes > mostBytes ? { error: `${called} has ${bytes} bytes, ${mostBytes} at most` } : { text };
    } catch (error) {
      return { error: `${called}: ${wordsOf(error)}` };
    }
  };
}

function parse(called: string, source: string): Template[] {
  try {
    const parsed = engine.parse(source);
    const unknown = engine.globalVariablesSync(parsed).filter((name) => !NAMES.includes(name));
    if (unknown.length > 0) throw new Error(`a fact has no ${unknown.join(", ")}, but ${NAMES.join(", ")}`);
    return parsed;
  } catch (error) {
    throw new UnmetNeed(`${called} cannot be rendered: ${wordsOf(error)}`, { cause: error });
  }
}

const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/(, file:[^,]*)?, line:\d+, col:\d+/g, "");
