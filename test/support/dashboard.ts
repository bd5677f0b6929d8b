// The dashboard in a real browser: signed in, looked at in both themes and in a narrow window, and searched for what keeps people out.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import type { Service } from "./service.ts";

/** What the browser saw, for people: not in git. */
const OUTPUT = join(import.meta.dirname, "../output/dashboard");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 360, height: 740 };

type Violation = { id: string; help: string; nodes: { html: string; failureSummary: string }[] };

export type Dashboard = {
  page: Page;
  /** What the browser complained about. */
  complaints: string[];
  /** What it complained about of mails, which may try whatever they like. */
  ofMails: string[];
  open(link: string): Promise<void>;
  /** What is asked before anything is done says to how many; then it is done, and told. */
  confirm(verb: string, asked: RegExp, told: RegExp, reason?: string): Promise<void>;
  /** Pictures of it in light, dark and narrow; fails on what axe finds and on what does not fit. */
  look(name: string): Promise<void>;
  /** Keeps a picture of what it was when something failed. */
  tellOf(name: string): (error: unknown) => Promise<never>;
};

export async function openDashboard(context: BrowserContext, service: Pick<Service, "url">): Promise<Dashboard> {
  mkdirSync(OUTPUT, { recursive: true });
  const page = await context.newPage();
  const complaints: string[] = [];
  const ofMails: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() !== "error" || /Failed to load resource/.test(message.text())) return;
    (message.location().url.includes("/dashboard/mail/") ? ofMails : complaints).push(message.text());
  });
  await page.setViewportSize(WIDE);
  return {
    page,
    complaints,
    ofMails,
    async open(link) {
      await page.goto(`${service.url}/dashboard${link}`);
    },
    async confirm(verb, asked, told, reason) {
      const dialog = page.getByRole("dialog");
      await dialog.getByText(asked).waitFor();
      if (reason !== undefined) await dialog.getByLabel(/Reason/).fill(reason);
      await dialog.getByRole("button", { name: verb, exact: true }).click();
      await page.getByText(told).first().waitFor();
    },
    look: (name) => look(page, name),
    tellOf: (name) => async (error) => {
      await page.screenshot({ path: join(OUTPUT, `failed ${name.slice(0, 40)}.png`), fullPage: true });
      throw error;
    },
  };
}

export async function signInWith(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

async function look(page: Page, name: string): Promise<void> {
  await page.getByText("Loading…").first().waitFor({ state: "detached" });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await checkAxe(page, `${name}, ${colorScheme}`);
    await page.screenshot({ path: join(OUTPUT, `${name}-${colorScheme}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize(NARROW);
  await checkAxe(page, `${name}, narrow`);
  await page.screenshot({ path: join(OUTPUT, `${name}-narrow.png`), fullPage: true });
  const width = await page.evaluate("document.documentElement.scrollWidth");
  await page.setViewportSize(WIDE);
  assert.equal(width, NARROW.width, `${name} is wider than the window`);
}

async function checkAxe(page: Page, where: string): Promise<void> {
  // By the debugger: the page's own policy lets no script in but its own.
  await page.evaluate(`if (!window.axe) { ${AXE}; }`);
  const violations = await page.evaluate<Violation[]>("axe.run(document).then(({ violations }) => violations)");
  const told = violations.map(({ id, help, nodes }) => ({
    id,
    help,
    nodes: nodes.slice(0, 3).map(({ html }) => html),
  }));
  assert.deepEqual(told, [], where);
}
