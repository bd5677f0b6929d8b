// The component in a real browser with a whole Carillon behind it: through a proxy on one origin, and across origins.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { readConfig } from "#config/read.ts";
import { start } from "#main.ts";
import { createLog } from "#telemetry/log.ts";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type InboxStandIn, startInboxStandIn } from "../support/inbox-stand-in.ts";
import { type PageServer, startPageServer } from "../support/page-server.ts";
import { ADMIN_KEY, asking, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const executable = await findChromium();
const inBrowser: { name: string; run: () => Promise<void> }[] = [];
const browse = (name: string, run: () => Promise<void>) => void inBrowser.push({ name, run });

let context: BrowserContext;
let service: Service;
let front: PageServer;
/** Only its page is used: one of another origin. */
let elsewhere: InboxStandIn;
/** A second service on the same database, which may be stopped and started. */
let second: { url: string; stop(): Promise<void> } | undefined;
const undo: (() => Promise<unknown>)[] = [];

const ROLES = ["api", "worker", "scheduler", "keeper", "stream"] as const;
const startSecond = async (port: number) => {
  const config = await readConfig({
    env: { CARILLON_API_KEY: ADMIN_KEY, PORT: String(port) },
    cwd: import.meta.dirname,
  });
  const { databaseUrl } = service;
  const allowOrigins = [elsewhere.url];
  second = await start({ ...config, databaseUrl, allowOrigins, drainMs: 2_000 }, createLog("silent"), () => {});
};

let users = 0;
const newUser = () => `browser ${++users}/é`;
const send = async (userId: string, content: object): Promise<string> => {
  const answer = await service.ask("POST", "/v1/notifications", { channel: "inbox", recipient: { userId }, content });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body.notificationId;
};
const tokenFor = async (userId: string, expiresInSeconds = 3_600): Promise<string> => {
  const path = `/v1/inbox/${encodeURIComponent(userId)}/tokens`;
  return (await service.ask("POST", path, { expiresInSeconds })).body.token;
};
const listed = async (userId: string) =>
  (await service.ask("GET", `/v1/inbox/${encodeURIComponent(userId)}?limit=200`)).body;

async function openPage(pageUrl: string, attributes: { [name: string]: string }): Promise<Page> {
  const page = await context.newPage();
  await page.goto(pageUrl);
  // The list is asked for when the stream is open: what is sent after its answer is an arrival.
  const ready = page.waitForResponse(/limit=20/);
  await page.evaluate(`customElements.whenDefined("carillon-inbox").then(() => {
    window.arrived = []; window.refused = 0;
    const inbox = document.createElement("carillon-inbox");
    for (const [name, value] of Object.entries(${JSON.stringify(attributes)})) inbox.setAttribute(name, value);
    inbox.addEventListener("carillon-notification", ({ detail }) => arrived.push(detail.id));
    inbox.addEventListener("carillon-unauthorized", () => refused++);
    document.querySelector("main").append(inbox);
  })`);
  await ready;
  return page;
}
const is = (page: Page, expression: string) =>
  until(async () => ((await page.evaluate(expression)) === true ? true : undefined), 40_000);
const badge = (page: Page, text: string) =>
  until(async () => ((await page.locator(".badge").first().textContent()) === text ? true : undefined));

browse("what is sent arrives, is delivered once it was seen, and reading it is kept", async () => {
  const userId = newUser();
  const page = await openPage(`${front.url}/demo`, { "user-id": userId, token: await tokenFor(userId) });
  const id = await send(userId, { title: "Hello", body: "It is on its way", clickAction: "/orders/17" });
  await badge(page, "1");
  assert.deepEqual(await page.evaluate("arrived"), [id]);
  await page.locator("button.bell").click();
  await until(async () => {
    const { body } = await service.ask("GET", `/v1/notifications/${id}`);
    return body.status === "delivered" ? true : undefined;
  });
  assert.equal(await page.locator("li a").getAttribute("href"), `${front.url}/orders/17`);
  await page.getByRole("button", { name: "Mark as read: Hello" }).click();
  await page.locator(".badge").waitFor({ state: "hidden" });
  const { data, unread } = await listed(userId);
  assert.equal(unread, 0);
  assert.ok(data[0].readAt);
  await page.getByRole("button", { name: "Archive: Hello" }).click();
  await page.getByText("Nothing here yet").waitFor();
  assert.deepEqual((await listed(userId)).data, []);
});

browse("the demo sends from the page, and both bells ring", async () => {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(`${front.url}/demo`);
  await page.getByLabel("API key").fill("wrong");
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("UNAUTHENTICATED").waitFor();
  complaints.length = 0;
  await page.getByLabel("API key").fill(ADMIN_KEY);
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("Connected as demo").waitFor();
  await page.getByLabel("Link").fill("/orders/17");
  await page.getByLabel("How many").fill("3");
  await page.getByRole("button", { name: "Send" }).click();
  await is(page, `[...document.querySelectorAll("carillon-inbox")].every(({ unread }) => unread === 3)`);
  await page.locator(".light button.bell").click();
  await page.locator(".light li").nth(2).waitFor();
  assert.deepEqual(complaints, []);
  assert.equal(await page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length"), 0);
});

browse("a page of another origin that is allowed reads and marks, through restarts, and misses nothing", async () => {
  await startSecond(0);
  const url = second?.url ?? "";
  const userId = newUser();
  const attributes = { url, "user-id": userId, token: await tokenFor(userId) };
  const page = await openPage(`${elsewhere.url}/?connect=${url}`, attributes);
  await send(userId, { title: "first" });
  await is(page, "arrived.length === 1");
  const batches = Array.from({ length: 25 }, (_, batch) =>
    Array.from({ length: 20 }, (_, n) => ({
      channel: "inbox",
      recipient: { userId },
      content: { title: `Number ${batch * 20 + n}` },
    })),
  );
  for (const [n, notifications] of batches.entries()) {
    const { body } = await asking(service.url)("POST", "/v1/notifications/batch", { notifications });
    assert.equal(body.summary.failed, 0);
    if (n === 8 || n === 16) {
      await second?.stop();
      await startSecond(Number(new URL(url).port));
    }
  }
  await is(page, "arrived.length >= 501");
  const inOrder: string[] = [];
  for (let cursor = ""; ; ) {
    const path = `/v1/inbox/${encodeURIComponent(userId)}?limit=200${cursor}`;
    const { data, nextCursor } = (await service.ask("GET", path)).body;
    inOrder.unshift(...data.map(({ id }: { id: string }) => id).reverse());
    if (nextCursor === null) break;
    cursor = `&cursor=${nextCursor}`;
  }
  assert.equal(inOrder.length, 501);
  assert.deepEqual(await page.evaluate("arrived"), inOrder);
  await page.locator("button.bell").click();
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await until(async () => ((await listed(userId)).unread === 0 ? true : undefined));
});

browse("when the token runs out the page is asked for another, and the session cookie does without", async () => {
  const userId = newUser();
  const page = await openPage(`${front.url}/demo`, { "user-id": userId, token: await tokenFor(userId, 2) });
  await is(page, "refused === 1");
  const missed = await send(userId, { title: "Meanwhile" });
  const token = await tokenFor(userId);
  await page.evaluate(`document.querySelector("carillon-inbox").token = ${JSON.stringify(token)}`);
  await is(page, "arrived.length === 1");
  assert.deepEqual(await page.evaluate("arrived"), [missed]);

  const path = `/v1/inbox/${encodeURIComponent(userId)}/session`;
  const headers = JSON.stringify({ authorization: `Bearer ${token}` });
  assert.equal(
    await page.evaluate(`fetch("${path}", { method: "POST", headers: ${headers} }).then(({ status }) => status)`),
    204,
  );
  const other = await openPage(`${front.url}/demo`, { "user-id": userId });
  await badge(other, "1");
  await page.close();
  await send(userId, { title: "By cookie" });
  await badge(other, "2");
});

if (executable === undefined) {
  for (const { name } of inBrowser) test(name, { skip: NO_CHROMIUM });
} else {
  before(async () => {
    const browser = await openBrowser(executable);
    context = browser.context;
    service = await startService({ roles: ROLES });
    front = await startPageServer(service, () => service.url);
    elsewhere = await startInboxStandIn();
    undo.push(browser.close, front.close, elsewhere.down, async () => second?.stop(), service.stop);
  });
  after(async () => {
    for (const step of undo) await step();
  });
  for (const { name, run } of inBrowser) test(name, { timeout: 600_000 }, run);
}
