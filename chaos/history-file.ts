// The history of a run as a file: a line for each field, and of what are many for each thousand of them. As one text, that of ten minutes is longer than a string may be.

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";

const PART = 1_000;

type Line = { name: string; value?: unknown; part?: unknown[] };

function* linesOf(history: object): Generator<Line> {
  for (const [name, value] of Object.entries(history)) {
    if (!Array.isArray(value)) yield { name, value };
    else for (let at = 0; at === 0 || at < value.length; at += PART) yield { name, part: value.slice(at, at + PART) };
  }
}

export async function writeHistory(path: string, history: object): Promise<void> {
  const file = await open(path, "w");
  try {
    for (const line of linesOf(history)) await file.write(`${JSON.stringify(line)}\n`);
  } finally {
    await file.close();
  }
}

export async function readHistory<History>(path: string): Promise<History> {
  const history: { [name: string]: unknown } = {};
  for await (const text of createInterface({ input: createReadStream(path) })) {
    const { name, value, part } = JSON.parse(text) as Line;
    if (!part) {
      history[name] = value;
      continue;
    }
    const all = (history[name] ?? []) as unknown[];
    for (const one of part) all.push(one);
    history[name] = all;
  }
  return history as History;
}
