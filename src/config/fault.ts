// What is wrong with the configuration. All of it is found before anything starts, and told together.

import type { Fault } from "#domain/problems.ts";

export const NOT_SHOWN = "something else (not shown)";
/** A slip is short; a key or a URL with a password that was put in the wrong place is not. */
const LONGEST_SHOWN = 16;

export function shortly(given: unknown): string {
  const text = JSON.stringify(given) ?? "";
  return text.length <= LONGEST_SHOWN ? text : NOT_SHOWN;
}

/** `path` is the variable, or the setting in the file with dots between its parts; `found` is in words that may be shown. */
export const misfit = (path: string, expected: string, found: string): Fault => ({
  path,
  message: `expected ${expected}, found ${found}`,
});

export class ConfigError extends Error {
  readonly faults: readonly Fault[];
  constructor(faults: readonly Fault[]) {
    const lines = faults.map(({ path, message }) => `  ${path}: ${message}`);
    super(`the configuration has ${faults.length} fault${faults.length === 1 ? "" : "s"}:\n${lines.join("\n")}`);
    this.name = "ConfigError";
    this.faults = faults;
  }
}
