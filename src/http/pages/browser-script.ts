// What the browser runs, as one module. Our browser files import only each other, so joining them in the order of
// their imports is all the bundling there is. From source the types are taken off; a built package has no types left.

import { readFileSync } from "node:fs";
// As a whole, because an older Node, on which a built package runs, does not have the function that source needs.
import * as nodeModule from "node:module";

const isSource = import.meta.url.endsWith(".ts");
const IMPORT = /^import\b[^;]*?\bfrom "\.\/([\w-]+)\.[jt]s";\n/gm;

/** The module `name` of web/inbox with all that it imports. Their top-level names must differ: a test sees to it. */
export function browserScript(name: string): string {
  const parts = new Map<string, string>();
  collect(name, parts);
  const entry = parts.get(name) ?? "";
  parts.delete(name);
  const imported = [...parts.values()].map((part) => part.replace(/^export (?=const|function|async|class)/gm, ""));
  return [...imported, entry].join("");
}

function collect(name: string, parts: Map<string, string>): void {
  if (parts.has(name)) return;
  const text = readFileSync(
    new URL(`${isSource ? "../../../web" : "../../web"}/inbox/${name}.${isSource ? "ts" : "js"}`, import.meta.url),
    "utf8",
  );
  const script = isSource ? withoutTypes(text) : text;
  for (const [, imported] of script.matchAll(IMPORT)) if (imported) collect(imported, parts);
  parts.set(name, lean(script.replace(IMPORT, "")));
}

/** Node warns that the function may change. Our Node is pinned, and the warning would greet every developer. */
function withoutTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return nodeModule.stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Without comments, indentation and the blanks that types left. Comments stand on lines of their own here. */
const lean = (script: string): string =>
  script
    .replace(/^\s*\/\/.*$/gm, "")
    .replace(/^\s*\/\*\*[\s\S]*?\*\/$/gm, "")
    .replace(/[ \t]{2,}/g, " ")
    .replace(/^\s+/gm, "");
