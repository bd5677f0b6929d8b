// /docs in a real browser: it finds, shows and tries out, under the policy that it is served with, and asks nobody but its own service.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { startService } from "../support/service.ts";

const chromium = await findChromium();
const shots = join(import.meta.dirname, "../../node_modules/.cache/carillon-screenshots");

test("the documentation is searched, shows examples with its own address, and tries an operation out with a key that it keeps to itself", {
  skip: chromium ? false : NO_CHROMIUM,
}, async (t) => {
  if (!chromium) return;
  const service = await startService();
  t.after(() => service.stop());
  const { context, close } = await openBrowser(chromium);
  t.after(close);
  const page = await context.newPage();
  const asked = new Set<string>();
  const refused: string[] = [];
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  page.on("console", (message) => void (message.type() === "error" && refused.push(message.text())));
  page.on("pageerror", (error) => refused.push(String(error)));
  await page.goto(`${service.url}/docs`);

  await page.keyboard.press("/");
  await page.keyboard.type("recurring PAUSE key post");
  const visible = page.locator("article:visible");
  assert.equal(await visible.count(), 1);
  assert.equal(await visible.getAttribute("data-path"), "/v1/schedules/:key/pause");
  assert.equal(await page.locator("#found").textContent(), "1 operation");

  await page.fill("#search", "Send a notification");
  const send = page.locator("#post-v1-notifications");
  await send.getByText("curl", { exact: true }).click();
  const curl = (await send.locator("pre.example").first().textContent()) ?? "";
  assert.ok(curl.startsWith(`curl -X POST '${service.url}/v1/notifications'`), curl);

  await send.getByText("Try it").click();
  await send.getByRole("button", { name: "Send POST" }).click();
  const said = send.locator("pre.said");
  await said.filter({ hasText: "UNAUTHENTICATED" }).waitFor();
  await page.fill("#key", service.key);
  await send.getByRole("button", { name: "Send POST" }).click();
  await said.filter({ hasText: "notificationId" }).waitFor();
  assert.match((await said.textContent()) ?? "", /^202 /);
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: join(shots, "docs.png") });

  // A name in the path, and a key that is gone with the page.
  await page.fill("#search", "/v1/templates/:id get");
  const read = page.locator("#get-v1-templates-id");
  await read.getByText("Try it").click();
  await read.locator('input[name="path:id"]').fill("no such");
  await read.getByRole("button", { name: "Send GET" }).click();
  await read.locator("pre.said").filter({ hasText: "NOT_FOUND" }).waitFor();
  assert.deepEqual(await page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]"), [0, 0, ""]);
  await page.reload();
  assert.equal(await page.inputValue("#key"), "");

  assert.deepEqual([...asked], [service.url]);
  // A browser words every answer that is not 2xx as an error; nothing else may be one.
  assert.deepEqual(
    refused.filter((text) => !/status of (401|404)/.test(text)),
    [],
  );
  const policy = (await (await fetch(`${service.url}/docs`)).headers.get("content-security-policy")) ?? "";
  assert.doesNotMatch(policy, /unsafe/);
});
