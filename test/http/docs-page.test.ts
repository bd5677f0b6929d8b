// The documentation as a phone shows it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { startService } from "../support/service.ts";

const chromium = await findChromium();

test("the documentation fits a narrow window", { skip: chromium ? false : NO_CHROMIUM }, async (t) => {
  if (!chromium) return;
  const service = await startService();
  t.after(() => service.stop());
  const { context, close } = await openBrowser(chromium);
  t.after(close);
  const page = await context.newPage();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${service.url}/docs`);
  await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true');
  const width = await page.evaluate("document.documentElement.scrollWidth");
  assert.equal(width, 390);
});
