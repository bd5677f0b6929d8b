// Gives schemas their names: what stands in several places is written once, under `components`, and referred to.

import type { Shape } from "./describe.ts";
import { NAMES } from "./names.ts";

export type Named = { name: string; shape: Shape };
/** What an operation takes and answers, by `body` or status. */
export type Bodies = { [place: string]: Shape };

/** The shapes that have a name, those that this process serves. */
export function namedShapes(operations: { [id: string]: Bodies }): Named[] {
  return Object.entries(NAMES).flatMap(([name, place]) => {
    const [id = "", path = ""] = place.split(" ");
    const [root = "", ...steps] = path.split(/\.|(?=\[\])/);
    const shape = steps.reduce(stepInto, operations[id]?.[root]);
    return shape ? [{ name, shape }] : [];
  });
}

const stepInto = (shape: Shape | undefined, step: string): Shape | undefined =>
  step === "[]" ? shape?.items : shape?.properties?.[step];

/** Writes a shape with references to the named ones that stand in it; `root` is not to refer to itself. */
export function referrer(named: readonly Named[]): (shape: Shape, root?: string) => Shape {
  const names = new Map<string, string>();
  for (const { name, shape } of named.toReversed()) names.set(JSON.stringify(shape), name);
  const refer = (shape: Shape, root?: string): Shape => {
    const name = names.get(JSON.stringify(shape));
    if (name !== undefined && name !== root) return { $ref: `#/components/schemas/${name}` };
    const { properties, items, anyOf, additionalProperties } = shape;
    return {
      ...shape,
      ...(properties && {
        properties: Object.fromEntries(Object.entries(properties).map(([key, field]) => [key, refer(field)])),
      }),
      ...(items && { items: refer(items) }),
      ...(anyOf && { anyOf: anyOf.map((one) => refer(one)) }),
      ...(typeof additionalProperties === "object" && { additionalProperties: refer(additionalProperties) }),
    };
  };
  return refer;
}
