// What browsers run: each entry of web/ as one minified module, or style. A package brings them along, made by `npm run build`;
// in a clone esbuild makes them when they are asked for, so that a page shows what was just written. esbuild is for
// developers only: nothing here may load it in a package.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** Under web/. */
export const ENTRIES = {
  inbox: "inbox/carillon-inbox.ts",
  demo: "inbox/demo.ts",
  docs: "docs/docs.ts",
  dashboard: "dashboard/dashboard.ts",
  dashboardStyle: "dashboard/style.css",
  mailFrame: "dashboard/mail-frame.ts",
} as const;

export type Entry = keyof typeof ENTRIES;

export const madeName = (entry: Entry): string => ENTRIES[entry].replace(/ts$/, "js");

const isSource = import.meta.url.endsWith(".ts");

export async function browserScript(entry: Entry): Promise<string> {
  return isSource ? bundle(entry) : readFile(new URL(`../../web/${madeName(entry)}`, import.meta.url), "utf8");
}

/** From src/ as from dist/, where `npm run build` calls it, web/ is three up. */
export async function bundle(entry: Entry): Promise<string> {
  const { buildSync } = await import("esbuild");
  // The synchronous one leaves no process behind to be ended.
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(`../../../web/${ENTRIES[entry]}`, import.meta.url))],
    bundle: true,
    minify: true,
    write: false,
    platform: "browser",
    format: "esm",
    target: "es2023",
    charset: "utf8",
    legalComments: "none",
    logLevel: "silent",
  });
  return outputFiles.map(({ text }) => text).join("");
}
