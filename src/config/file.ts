// The config file: found by name or in the working directory, read as TypeScript, JavaScript or JSON.

import { existsSync, readFileSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Fault } from "#domain/problems.ts";
import { misfit } from "./fault.ts";
import { jsonFaultAt } from "./json.ts";
import { isObject } from "./setting.ts";

const FILES = ["carillon.config.ts", "carillon.config.js", "carillon.config.json"];

/** An empty object where there is none. */
export async function readConfigFile(
  named: string | undefined,
  cwd: string,
  faults: Fault[],
): Promise<{ [name: string]: unknown }> {
  const path = named ? resolve(cwd, named) : FILES.map((name) => resolve(cwd, name)).find((name) => existsSync(name));
  if (path === undefined) return {};
  const fault = (expected: string, found: string) => {
    faults.push(misfit(named ? "CARILLON_CONFIG" : path, expected, found));
    return {};
  };
  if (![".ts", ".js", ".mjs", ".json"].includes(extname(path))) return fault("a .ts, .js or .json file", path);
  try {
    const content =
      extname(path) === ".json"
        ? JSON.parse(readFileSync(path, "utf8"))
        : ((await import(pathToFileURL(path).href)) as { default?: unknown }).default;
    if (!isObject(content)) {
      return fault(extname(path) === ".json" ? "an object" : "an object as default export", "something else");
    }
    return { ...content };
  } catch (error) {
    const hint = "a file that can be read";
    if (error instanceof SyntaxError && extname(path) === ".json") {
      const { line, column } = jsonFaultAt(readFileSync(path, "utf8")) ?? {};
      return fault(hint, `${path}: not valid JSON at line ${line}, column ${column}`);
    }
    if (error instanceof Error && "code" in error && error.code === "ERR_UNKNOWN_FILE_EXTENSION") {
      const found = `${path} under Node ${process.versions.node}, which reads no TypeScript`;
      return fault("Node 22.18 or newer for a .ts file, or else a .js or .json file", found);
    }
    return fault(hint, error instanceof Error ? `${path}: ${error.message.split("\n")[0]}` : path);
  }
}
