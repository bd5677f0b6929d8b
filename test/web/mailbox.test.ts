// The mailbox page in a real browser, with what strangers may write in every field.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ROLES } from "#config/server.ts";
import { type Chromium, findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { openDashboard, signInWith } from "../support/dashboard.ts";
import { HOSTILE } from "../support/dashboard-world.ts";
import { ADMIN_KEY, startService } from "../support/service.ts";

const executable = await findChromium();

test("the mailbox shows what was kept, runs nothing of it, and deletes what it is told to", {
  skip: executable ? false : NO_CHROMIUM,
}, async (t) => {
  const service = await startService({ roles: ROLES });
  const browser = await openBrowser(executable as Chromium);
  t.after(async () => {
    await browser.close();
    await service.stop();
  });
  const attachments = [{ filename: `${HOSTILE}.html`, contentType: "text/html", content: "PGI+" }];
  const content = {
    subject: HOSTILE,
    htmlBody: `<p>News</p>${HOSTILE}<a href="javascript:document.title='owned'">x</a>`,
    attachments,
  };
  await service.ask("POST", "/v1/notifications", {
    channel: "email",
    recipient: { email: "ada@example.com" },
    content,
  });
  await service.ask("POST", "/v1/notifications", {
    channel: "sms",
    recipient: { phone: "+4917012345" },
    content: { body: HOSTILE },
  });
  const blocks = [{ type: "section", text: { type: "mrkdwn", text: HOSTILE } }];
  const slack = { channel: "slack", recipient: { slackChannel: "C1" }, content: { body: HOSTILE, data: { blocks } } };
  await service.ask("POST", "/v1/notifications", slack);
  for (const channel of ["email", "sms", "slack"])
    await service.ask("GET", `/v1/dev/messages?wait=60s&channel=${channel}`);
  const { page, open, look, complaints } = await openDashboard(browser.context, service);
  await open("#/mailbox");
  await signInWith(page, ADMIN_KEY);
  const table = page.getByRole("table", { name: "Kept messages" });
  await table.waitFor();
  await look("mailbox");
  for (const channel of ["email", "sms", "slack"]) {
    await open(`#/mailbox?channel=${channel}`);
    await table.getByRole("link").first().click();
    await page.getByRole("region", { name: "Source" }).waitFor();
    await look(`mailbox-${channel}`);
    assert.equal(await page.title().then((title) => title.includes("owned")), false);
  }
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("The message is deleted.").waitFor();
  assert.deepEqual((await service.ask("GET", "/v1/dev/messages?channel=slack")).body.data, []);
  assert.deepEqual(complaints, []);
});
