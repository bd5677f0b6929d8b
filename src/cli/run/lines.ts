// Lines for people, and the pages they come from.

import type { Answer } from "../command.ts";

const WIDTH = 28;

export const columns = (cells: readonly string[]): string =>
  cells
    .map((cell) => cell.padEnd(WIDTH))
    .join(" ")
    .trimEnd();

/** Something was done: the sentence that says so, and what is so now. */
export const said = (text: string, json: unknown, code = 0): Answer => ({ json, text: [text], code });

/** A list: a document of all, and a line or some of each. */
export const listed = <Item>(data: readonly Item[], linesOf: (item: Item) => string | string[]): Answer => ({
  json: { data },
  text: data.flatMap(linesOf),
});

type Page<Item> = { data: Item[]; nextCursor: string | null };

/** Every item, page after page; or the first so many. */
export async function readAll<Item>(
  ask: (page: { cursor?: string; limit?: number }) => Promise<Page<Item>>,
  most = Number.POSITIVE_INFINITY,
): Promise<Item[]> {
  const all: Item[] = [];
  let cursor: string | null = null;
  do {
    const limit = Number.isFinite(most) && { limit: Math.min(most - all.length, LARGEST_PAGE) };
    const page: Page<Item> = await ask({ ...(cursor !== null && { cursor }), ...limit });
    all.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null && all.length < most);
  return all;
}

const LARGEST_PAGE = 200;

export const definedOf = <Fields extends { [name: string]: unknown }>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== "")) as {
    [name in keyof Fields]?: NonNullable<Fields[name]>;
  };
