// An example of what a schema allows: what it says itself, or else the plainest thing that fits.

import type { Shape } from "./describe.ts";

export const EXAMPLE_ID = "018f2c1d-7000-7000-8000-000000000000";
export const EXAMPLE_INSTANT = "2027-01-01T09:00:00.000Z";

type Shapes = { [name: string]: Shape };

/** `shapes` are those that it may refer to; `only` leaves out what need not be there. */
export function exampleOf(shape: Shape, shapes: Shapes = {}, only: "all" | "required" = "all"): unknown {
  const { $ref, examples, properties, items, anyOf } = shape;
  const of = (one: Shape) => exampleOf(one, shapes, only);
  if ($ref !== undefined) return of(shapes[$ref.split("/").at(-1) ?? ""] ?? {});
  if (examples && examples.length > 0) return examples[0];
  if (properties) return exampleOfFields(shape, of, only);
  if (anyOf) return of(anyOf[0] ?? {});
  if (items) return [of(items)];
  return plainest(shape);
}

function exampleOfFields(
  { properties = {}, required = [] }: Shape,
  of: (shape: Shape) => unknown,
  only: "all" | "required",
): unknown {
  const shown = Object.entries(properties).filter(([name]) => only === "all" || required.includes(name));
  return Object.fromEntries(shown.map(([name, field]) => [name, of(field)]));
}

function plainest({ type, format, default: usual, const: fixed, enum: words }: Shape): unknown {
  if (fixed !== undefined) return fixed;
  if (words) return words[0];
  if (usual !== undefined) return usual;
  if (format === "uuid") return EXAMPLE_ID;
  if (format === "date-time") return EXAMPLE_INSTANT;
  if (type === "boolean") return true;
  if (type === "null") return null;
  return undefined;
}
