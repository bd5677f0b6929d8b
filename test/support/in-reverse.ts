// What was begun last is ended first. A test's own hooks run in the order in which they were made.

import type { TestContext } from "node:test";

export type Ends = { after(end: () => unknown): void };

export function inReverse(t: TestContext): Ends {
  const ends: (() => unknown)[] = [];
  t.after(async () => {
    for (let end = ends.pop(); end; end = ends.pop()) await end();
  });
  return { after: (end) => void ends.push(end) };
}
