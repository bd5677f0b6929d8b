// A real browser, where the machine has one.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
];
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];

/** Where it is. CHROMIUM in the environment names another, or none if it is empty. */
export const findChromium = (): string | undefined =>
  (process.env.CHROMIUM === undefined ? PLACES : [process.env.CHROMIUM]).find((path) => existsSync(path));

/** A profile of its own: tabs of one context share locks and channels as tabs of one user do. */
export async function openBrowser(
  executablePath: string,
): Promise<{ context: BrowserContext; close: () => Promise<void> }> {
  const profile = await mkdtemp(join(tmpdir(), "carillon-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: [...ARGUMENTS, "--disable-sync", "--no-first-run"],
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
