// The dashboard in a real browser with a whole Carillon behind it.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { BrowserContext } from "playwright-core";
import { browserScript } from "#http/pages/bundle.ts";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type Dashboard, openDashboard, signInWith } from "../support/dashboard.ts";
import { ADMIN_KEY, type Service, startService } from "../support/service.ts";

const MOST_BYTES = 60_000;
const executable = await findChromium();
const inBrowser: { name: string; run: () => Promise<void> }[] = [];
/** Collected first, so that a machine without a browser can say how many tests it left out. */
const browse = (name: string, run: () => Promise<void>) => void inBrowser.push({ name, run });

let context: BrowserContext;
let service: Service;
let dashboard: Dashboard;
const undo: (() => Promise<unknown>)[] = [];

test("all of it is 60 kB or less on the wire", async () => {
  const files = await Promise.all((["dashboard", "dashboardStyle", "mailFrame"] as const).map(browserScript));
  const bytes = files.reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
  assert.ok(bytes <= MOST_BYTES, `${bytes} bytes`);
});

browse("nobody is let in without a key; a wrong one is told so, a right one is kept nowhere", async () => {
  const { page, look, open } = dashboard;
  await open("#/messages");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await look("sign-in");
  await page.getByLabel("API key").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("UNAUTHENTICATED").waitFor();
  await signInWith(page, ADMIN_KEY);
  assert.equal(await page.evaluate("document.cookie + Object.keys(localStorage) + Object.keys(sessionStorage)"), "");
  const [cookie] = await context.cookies();
  assert.deepEqual(
    [cookie?.name, cookie?.httpOnly, cookie?.sameSite, cookie?.path],
    ["carillon_session", true, "Strict", "/"],
  );
});

browse("its policy lets nothing in from elsewhere, and no script or style that stands in the page", async () => {
  const answer = await service.ask("GET", "/dashboard", undefined, { key: null });
  const policy = answer.headers.get("content-security-policy") ?? "";
  assert.ok(policy.startsWith("default-src 'none';") && !policy.includes("unsafe"), policy);
  const [script = ""] = /\/dashboard\/[\w-]+\.js/.exec(answer.body) ?? [];
  const file = await service.ask("GET", script, undefined, { key: null });
  assert.equal(file.headers.get("cache-control"), "public, max-age=31536000, immutable");
  assert.equal(file.headers.get("content-encoding"), "gzip");
  assert.equal((await service.ask("GET", "/dashboard/other.js", undefined, { key: null })).status, 404);
});

browse("the overview says how things are", async () => {
  await dashboard.open("#/");
  await dashboard.page.getByRole("heading", { name: "Overview" }).waitFor();
  await dashboard.page.getByText("Nothing is stopped").waitFor();
  await dashboard.look("overview-empty");
});

browse("the keyboard leads everywhere", async () => {
  const { page, open } = dashboard;
  await open("#/nowhere");
  await page.getByText("There is no such page").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Overview").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
});

browse("who signs out is out, and a session that is over leads back to the way in", async () => {
  const { page, open } = dashboard;
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(await context.cookies(), []);
  const made = (await service.ask("POST", "/v1/keys", { name: "Somebody", scopes: ["send"] })).body;
  await open("#/");
  await signInWith(page, made.key);
  await page.getByText("This key may not see that").waitFor();
  await service.ask("DELETE", `/v1/keys/${made.id}`);
  await page.reload();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
});

if (executable === undefined) {
  for (const { name } of inBrowser) test(name, { skip: NO_CHROMIUM });
} else {
  before(async () => {
    const browser = await openBrowser(executable);
    context = browser.context;
    service = await startService({ roles: ["api", "worker", "scheduler", "keeper", "stream"] });
    dashboard = await openDashboard(context, service);
    undo.push(browser.close, service.stop);
  });
  afterEach(() => assert.deepEqual(dashboard.complaints.splice(0), []));
  after(async () => {
    for (const step of undo) await step();
  });
  for (const { name, run } of inBrowser) test(name, { timeout: 600_000 }, run);
}
