// The mailbox page in a real browser, with what strangers may write in every field.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { ROLES } from "#config/server.ts";
import { CHANNELS } from "#domain/notification.ts";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type Dashboard, openDashboard, signInWith } from "../support/dashboard.ts";
import { HOSTILE } from "../support/dashboard-world.ts";
import { ADMIN_KEY, type Service, startService } from "../support/service.ts";

const executable = await findChromium();
const options = { skip: executable ? false : NO_CHROMIUM, timeout: 600_000 };

const ALL_DEV = Object.fromEntries(CHANNELS.map((channel) => [channel, "dev"])) as Config["routes"];
const SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const BAD_LINK = "javascript:document.title='owned'";
/** Names of files have no slash. */
const filename = `${HOSTILE.replaceAll("/", "")}.html`;
const piece = (text: string, style = {}) => ({ type: "text", text, style });
const section = (...elements: unknown[]) => ({ type: "rich_text_section", elements });
/** Every kind of part and piece, some of them as nobody should write them. */
const richText = {
  type: "rich_text",
  elements: [
    section(
      piece("Rich ", { bold: true, italic: true }),
      piece("struck", { strike: true }),
      piece(" typed", { code: true, bold: "yes" }),
      piece(`\n${HOSTILE}`, { underline: true }),
    ),
    section(
      { type: "link", url: BAD_LINK, text: "an offer" },
      ...[piece(" and "), { type: "link", url: "https://example.com/terms" }, piece(" for ")],
      ...[{ type: "user", user_id: "U012" }, piece(" in "), { type: "channel", channel_id: "C345" }, piece(" ")],
      ...[{ type: "broadcast", range: "here" }, piece(" "), { type: "emoji", name: "wave", unicode: "1f44b-1f3fd" }],
      ...[piece(" "), { type: "emoji", name: "party_parrot", unicode: "ffffff" }, piece(" "), { type: "usergroup" }],
      ...[piece(" "), { type: "date", timestamp: 0 }, piece(" "), { type: "color", value: "#ff0000" }, { type: 7 }],
    ),
    { type: "rich_text_list", style: "bullet", elements: [section(piece("bread")), section(piece("milk"))] },
    { type: "rich_text_list", style: "ordered", indent: 99, offset: 3, elements: [section(piece("fourth")), null, 7] },
    { type: "rich_text_quote", elements: [piece("said by somebody")] },
    { type: "rich_text_preformatted", elements: [piece(`const a = 1;\n  ${HOSTILE}`)] },
    ...[{ type: HOSTILE, elements: { length: 3 } }, null, "none"],
    section(...Array.from({ length: 1_000 }, () => piece("much", { strike: true }))),
  ],
};
const blocks = [
  { type: "header", text: { type: "plain_text", text: `Header ${HOSTILE}` } },
  { type: "section", text: { type: "mrkdwn", text: HOSTILE }, fields: [{ type: "mrkdwn", text: `Field ${HOSTILE}` }] },
  richText,
  { type: "rich_text", elements: "none" },
  { type: "divider" },
  { type: "image", image_url: "https://example.com/pixel.png", alt_text: `Image ${HOSTILE}` },
  { type: "actions", elements: [{ type: "button", text: { type: "plain_text", text: "Approve" }, url: BAD_LINK }] },
  { type: "context", elements: [{ type: "mrkdwn", text: `Context ${HOSTILE}` }] },
  { type: HOSTILE, text: null, elements: "none", fields: [null, 7] },
  { type: "context", elements: Array.from({ length: 2_000 }, () => ({ type: "mrkdwn", text: "many" })) },
  HOSTILE,
];
const SENT = {
  email: {
    recipient: { email: "ada@example.com" },
    content: {
      subject: HOSTILE,
      htmlBody: `<h1>News</h1>${HOSTILE}<a href="${BAD_LINK}">bad link</a>`,
      attachments: [{ filename, contentType: "text/html", content: "PGI+" }],
    },
  },
  sms: { recipient: { phone: "+4917012345" }, content: { body: HOSTILE } },
  push: {
    recipient: { deviceTokens: ["phone-1"] },
    content: {
      title: HOSTILE,
      body: HOSTILE,
      clickAction: BAD_LINK,
      imageUrl: "https://example.com/pixel.png",
      badge: 3,
    },
  },
  slack: { recipient: { slackChannel: "C1" }, content: { body: HOSTILE, data: { blocks } } },
  webhook: {
    recipient: { webhookUrl: "https://example.com/hook" },
    content: { body: HOSTILE, data: { said: HOSTILE } },
  },
};

let service: Service;
let dashboard: Dashboard;
const undo: (() => Promise<unknown>)[] = [];
const isGone = async (query = "") => (await service.ask("GET", `/v1/dev/messages${query}`)).body.data.length === 0;
const button = (name: string) => dashboard.page.getByRole("button", { name, exact: true });
async function confirmed(verb: string, told: string): Promise<void> {
  await dashboard.page.getByRole("dialog").getByRole("button", { name: verb, exact: true }).click();
  await dashboard.page.getByText(told).waitFor();
}
async function openMessage(channel: string): Promise<void> {
  const { page, open } = dashboard;
  await open(`#/mailbox?channel=${channel}`);
  await page.getByRole("table", { name: "Kept messages" }).getByRole("link").last().click();
  await page.getByRole("region", { name: "Source", exact: true }).waitFor();
}

async function staysText(): Promise<void> {
  assert.doesNotMatch(await dashboard.page.title(), /owned/);
  assert.equal(await dashboard.page.locator("a[href^='javascript:'], main img, main script").count(), 0);
}

async function richTextIsShown(): Promise<void> {
  const rich = dashboard.page.locator(".rich").first();
  assert.equal(await rich.locator("strong > em").textContent(), "Rich ");
  assert.equal(await rich.locator("s").first().textContent(), "struck");
  assert.equal(await rich.locator("code").textContent(), " typed");
  assert.equal(await rich.locator("strong").count(), 1, "a style is true or is none");
  assert.equal(await rich.locator("u").textContent(), `\n${HOSTILE}`);
  assert.equal(
    await rich.locator("p").nth(1).textContent(),
    `an offer (${BAD_LINK}) and https://example.com/terms for @user U012 in #channel C345 @here 👋🏽 :party_parrot: @group of no name 1970-01-01T00:00:00.000Z #ff0000something`,
  );
  assert.equal(await rich.locator("a").count(), 0, "where links lead is said, and nothing more");
  assert.deepEqual(await rich.locator("ul > li").allTextContents(), ["bread", "milk"]);
  assert.deepEqual(await rich.locator("ol > li").allTextContents(), ["fourth", "", ""]);
  assert.equal(await rich.locator("ol").getAttribute("start"), "4");
  assert.equal(await rich.locator("blockquote").textContent(), "said by somebody");
  assert.equal(await rich.locator("pre").textContent(), `const a = 1;\n  ${HOSTILE}`);
  const much = await rich.getByText("much").count();
  assert.ok(much > 100 && much < 500, `${much} of 1,000`);
}

before(async () => {
  if (!executable) return;
  const browser = await openBrowser(executable);
  undo.push(browser.close);
  service = await startService({
    ...{ roles: ROLES, development: true, routes: ALL_DEV },
    providers: { dev: { type: "dev" }, webhook: { type: "webhook", secret: SECRET } },
  });
  undo.push(service.stop);
  for (const [channel, request] of Object.entries(SENT)) {
    const { status, body } = await service.ask("POST", "/v1/notifications", { channel, ...request });
    assert.equal(status, 202, JSON.stringify(body));
    const kept = await service.ask("GET", `/v1/dev/messages?wait=60s&channel=${channel}`);
    assert.equal(kept.body.data.length, 1, channel);
  }
  dashboard = await openDashboard(browser.context, service);
  await dashboard.open("#/mailbox");
  await signInWith(dashboard.page, ADMIN_KEY);
});
afterEach(async () => {
  if (!executable) return;
  assert.deepEqual(dashboard.complaints.splice(0), []);
  await staysText();
});
after(async () => {
  for (const step of undo) await step();
});

test("what was kept is listed, found by its words, and comes by itself", options, async () => {
  const { page, open, look } = dashboard;
  const rows = page.getByRole("table", { name: "Kept messages" }).getByRole("link");
  await open("#/mailbox");
  await rows.nth(4).waitFor();
  await look("mailbox");
  await page.getByRole("searchbox", { name: "Search" }).fill("tuesday");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing was kept").waitFor();
  await service.ask("POST", "/v1/notifications", {
    ...{ channel: "sms", recipient: { phone: "+4917099999" } },
    content: { body: "See you on Tuesday" },
  });
  await page.getByRole("link", { name: "See you on Tuesday" }).waitFor({ timeout: 120_000 });
});

test("every channel has its own look, and what strangers wrote stays text in each", options, async () => {
  const { page, look } = dashboard;
  for (const channel of Object.keys(SENT)) {
    await openMessage(channel);
    if (channel === "email") {
      await page.frameLocator("iframe").getByRole("heading", { name: "News" }).waitFor();
      await page.frameLocator("iframe").getByRole("link", { name: "bad link" }).click();
      await page.getByText("which is not opened from here").waitFor();
      await button("Text").click();
      await page.getByRole("region", { name: "Text of the mail" }).getByText("News").waitFor();
      await button("HTML").click();
      await page.frameLocator("iframe").getByRole("heading", { name: "News" }).waitFor();
    }
    if (channel === "push") await page.getByText("badge 3", { exact: true }).waitFor();
    if (channel === "slack") {
      for (const text of ["Header <img", "Field <img", "Image <img", "Approve", "Context <img"])
        await page.locator(".blocks").getByText(text).first().waitFor();
      assert.equal(await page.locator(".blocks").getByText("many", { exact: true }).count(), 50);
      await richTextIsShown();
    }
    if (channel === "webhook")
      await page.getByRole("region", { name: "Headers" }).getByText("webhook-signature").waitFor();
    await look(`mailbox-${channel}`);
    await staysText();
  }
});

test("an attachment is saved, and never shown", options, async () => {
  const { page } = dashboard;
  await openMessage("email");
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: filename, exact: true }).click(),
  ]);
  assert.equal(await saved.failure(), null);
  assert.match(page.url(), /#\/mailbox\//);
});

test("in development the clock is moved on and set back, and the next sends are made to fail", options, async () => {
  const { page, open, look } = dashboard;
  await open("#/mailbox");
  await page.getByText("The clock shows the true time.").waitFor();
  await page.getByLabel("Move it on by").selectOption("a day");
  await button("Move the clock").click();
  await confirmed("Move it", "The clock was moved on by a day.");
  await page.getByText("The clock is 1 d ahead").waitFor();
  assert.ok((await service.ask("GET", "/v1/dev/clock")).body.movedMs > 86_000_000);
  await page.getByRole("combobox", { name: "Fault", exact: true }).selectOption("503");
  await page.getByRole("spinbutton", { name: "Sends" }).fill("2");
  await button("Make them fail").click();
  await confirmed("Make them fail", "The next 2 sends fail.");
  await page.getByRole("table", { name: "Faults" }).getByText("2 of 2").waitFor();
  await look("mailbox-development");
  await button("Forget all faults").click();
  await confirmed("Forget them", "Sends go well again.");
  assert.deepEqual((await service.ask("GET", "/v1/dev/faults")).body.data, []);
  await button("Set it back").click();
  await confirmed("Set it back", "The clock was set back.");
  assert.ok((await service.ask("GET", "/v1/dev/clock")).body.movedMs < 1_000);
});

test(
  "elsewhere there is neither clock nor fault to be seen, and who may only read deletes nothing",
  options,
  async (t) => {
    const { page } = dashboard;
    const production = await startService({ databaseUrl: service.databaseUrl });
    t.after(production.stop);
    const key = await service.makeKey({ scopes: ["read"] });
    const other = await page.context().newPage();
    t.after(() => other.close());
    await page.context().clearCookies();
    await other.goto(`${production.url}/dashboard#/mailbox`);
    const asked = other.waitForResponse((answer) => answer.url().endsWith("/v1/dev/clock"));
    await signInWith(other, key);
    assert.equal((await asked).status(), 404);
    await other.getByRole("table", { name: "Kept messages" }).waitFor();
    assert.equal(await other.getByText("Time travel").count(), 0);
    assert.equal(await other.getByRole("button", { name: "Delete all" }).count(), 0);
    await page.reload();
    await page.context().clearCookies();
    await page.reload();
    await signInWith(page, ADMIN_KEY);
  },
);

test("one message is deleted, or all of them, after a question", options, async () => {
  const { page, open } = dashboard;
  await openMessage("slack");
  await button("Delete").click();
  await confirmed("Delete", "The message is deleted.");
  await page.getByRole("heading", { name: "Mailbox", level: 1 }).waitFor();
  assert.ok(await isGone("?channel=slack"));
  assert.ok(!(await isGone()));
  await open("#/mailbox");
  await button("Delete all").click();
  await confirmed("Delete all", "The mailbox is empty.");
  await page.getByText("Nothing was kept").waitFor();
  assert.ok(await isGone());
});
