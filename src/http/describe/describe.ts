// Gives every field of the document its sentence and its example. A schema's own description goes before; what is not in the tables stays
// without one, and test/http/openapi.test.ts names it.

import { exampleOf } from "./examples.ts";
import { OF_MAILBOX } from "./fields-of-mailbox.ts";
import { OF_NOTIFICATIONS } from "./fields-of-notifications.ts";
import { OF_OPERATING } from "./fields-of-operating.ts";
import { OF_PLANNING } from "./fields-of-planning.ts";
import { OF_PLANS } from "./fields-of-plans.ts";

/** A sentence, and an example where the schema gives none. */
export type Fields = { readonly [field: string]: string | readonly [sentence: string, example: unknown] };
export type Shape = {
  $ref?: string;
  type?: string;
  description?: string;
  examples?: unknown[];
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  format?: string;
  required?: string[];
  properties?: { [name: string]: Shape };
  items?: Shape;
  anyOf?: Shape[];
  additionalProperties?: Shape | boolean;
  patternProperties?: { [pattern: string]: Shape };
};

const FIELDS: Fields = { ...OF_NOTIFICATIONS, ...OF_PLANNING, ...OF_OPERATING, ...OF_PLANS, ...OF_MAILBOX };

/** Where a field stands: in which schema or operation, of which tag, and in which other field, or `query` or `path`. */
export type Place = { owner: string; tag?: string; around?: string };

export function describeField(name: string, shape: Shape, place: Place): Shape {
  const { owner, tag, around } = place;
  const keys = [...[owner, around, tag].map((where) => `${where}.${name}`), name];
  const [sentence, example] = [keys.map((key) => FIELDS[key]).find((found) => found !== undefined)].flat();
  const inner = describe(shape, { ...place, around: name });
  const described = {
    ...inner,
    ...(inner.description === undefined && sentence !== undefined && { description: String(sentence) }),
  };
  if (!isLeaf(described) || described.examples) return described;
  const value = example === undefined ? exampleOf(described) : example;
  return value === undefined ? described : { ...described, examples: [value] };
}

/** All fields in it. */
export function describe(shape: Shape, place: Place): Shape {
  const { properties, items, anyOf } = shape;
  // What a list answers with is called `data` everywhere; a notification's is another thing.
  const isPage = properties?.data?.items !== undefined;
  const placeOf = (name: string): Place => (isPage && name === "data" ? { ...place, around: "page" } : place);
  const described = Object.entries(properties ?? {}).map(([name, field]) => [
    name,
    describeField(name, field, placeOf(name)),
  ]);
  return {
    ...shape,
    ...(properties && { properties: Object.fromEntries(described) }),
    ...(items && { items: describe(items, place) }),
    ...(anyOf && { anyOf: anyOf.map((one) => describe(one, place)) }),
  };
}

/** What has fields of its own is shown by these. */
export function isLeaf({ $ref, properties, items, anyOf }: Shape): boolean {
  if ($ref !== undefined || Object.keys(properties ?? {}).length > 0) return false;
  if (items) return isLeaf(items);
  return anyOf?.every(isLeaf) ?? true;
}
