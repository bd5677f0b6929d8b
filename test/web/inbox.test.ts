// The component in a real browser, against a server that can fail in every way the component must bear.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { BrowserContext, Page } from "playwright-core";
import { browserScript } from "#http/pages/bundle.ts";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type InboxStandIn, startInboxStandIn } from "../support/inbox-stand-in.ts";
import { until } from "../support/until.ts";

const executable = await findChromium();
const inBrowser: { name: string; run: () => Promise<void> }[] = [];
/** Collected first, so that a machine without a browser can say how many tests it left out. */
const browse = (name: string, run: () => Promise<void>) => void inBrowser.push({ name, run });

let context: BrowserContext;
let close: () => Promise<void>;
let server: InboxStandIn;

/** A page with the component, which keeps the titles of what arrived. Anything the browser complains about fails. */
async function openPage(attributes: { [name: string]: string } = {}): Promise<Page> {
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|net::ERR_/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  await page.goto(server.url);
  // What the first list has was there before; only what comes after it is an arrival.
  const listed = attributes["user-id"] === "" ? undefined : page.waitForResponse(/limit=20/);
  await place(page, { "user-id": server.userId, token: "good", ...attributes });
  await listed;
  return page;
}

const place = (page: Page, attributes: { [name: string]: string }): Promise<unknown> =>
  page.evaluate(`customElements.whenDefined("carillon-inbox").then(() => {
    window.arrived = []; window.opened = []; window.refused = 0;
    const inbox = document.createElement("carillon-inbox");
    for (const [name, value] of Object.entries(${JSON.stringify(attributes)})) inbox.setAttribute(name, value);
    inbox.addEventListener("carillon-notification", ({ detail }) => arrived.push(detail.title));
    inbox.addEventListener("carillon-open", (event) => opened.push(event.detail));
    inbox.addEventListener("carillon-unauthorized", () => refused++);
    document.querySelector("main").append(inbox);
  })`);

/** An expression of JavaScript over the component and what it drew. */
const inside = <Value>(page: Page, expression: string): Promise<Value> =>
  page.evaluate(`((inbox, root) => ${expression})(
    document.querySelector("carillon-inbox"), document.querySelector("carillon-inbox").shadowRoot)`);
const scrollDown = (page: Page) => inside(page, 'root.querySelector(".scroll").scrollTo(0, 1e9)');
const complaints: string[] = [];
const arrived = (page: Page): Promise<string[]> => page.evaluate("arrived");
const titles = (page: Page): Promise<string[]> => page.locator("li .title").allTextContents();
const isTrue = (page: Page, expression: string) =>
  until(async () => ((await page.evaluate(expression)) === true ? true : undefined));
const badge = (page: Page, text: string) =>
  until(async () => ((await page.locator(".badge").textContent()) === text ? true : undefined));
const connected = (count = 1) => until(async () => (server.streams().open === count ? true : undefined));
const bell = (page: Page) => page.locator("button.bell");
const banner = (page: Page) => page.locator(".banner");
const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `Number ${from + index}`);

browse("what arrives is counted on the bell, told to the page and shown", async () => {
  const page = await openPage();
  await connected();
  server.push({ title: "Hello", body: "Two\nlines" });
  await badge(page, "1");
  assert.deepEqual(await arrived(page), ["Hello"]);
  assert.equal(await bell(page).getAttribute("aria-label"), "Notifications, 1 unread");
  await until(async () => ((await page.locator("[role=status]").first().textContent()) !== "" ? true : undefined));
  assert.equal(await page.locator("[aria-live=polite]").first().textContent(), "New notification: Hello");

  await bell(page).click();
  server.push({ title: "While open" });
  await page.locator("li >> text=While open").waitFor();
  assert.deepEqual(await titles(page), ["While open", "Hello"]);
  await until(async () => (server.acked.length === 2 ? true : undefined));
  assert.deepEqual(server.acked.toSorted(), ["id-1", "id-2"]);
});

browse("what nobody has seen is not acknowledged", async () => {
  for (let n = 0; n < 40; n++) server.push();
  const page = await openPage();
  await badge(page, "40");
  assert.equal(server.acked.length, 0);
  await bell(page).click();
  await until(async () => (server.acked.length > 0 ? true : undefined));
  assert.ok(server.acked.includes("id-40"));
  assert.ok(!server.acked.includes("id-21"), "it is drawn, but below the fold");
});

browse("reading, archiving and reading all reach the server, the badge and the other tabs", async () => {
  for (let n = 0; n < 4; n++) server.push();
  const [page, other] = [await openPage(), await openPage()];
  await badge(other, "4");
  await bell(other).click();
  await page.bringToFront();
  await bell(page).click();
  await page.getByRole("button", { name: "Mark as read: Number 4" }).click();
  await badge(page, "3");
  await page.getByRole("button", { name: "Archive: Number 3" }).click();
  await badge(page, "2");
  assert.deepEqual(await titles(page), ["Number 4", "Number 2", "Number 1"]);
  await badge(other, "2");
  assert.deepEqual(await titles(other), ["Number 4", "Number 2", "Number 1"]);
  assert.equal(await other.locator("li.unread").count(), 2);
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await page.locator(".badge").waitFor({ state: "hidden" });
  assert.equal(await bell(page).getAttribute("aria-label"), "Notifications");
  await until(async () => ((await other.locator("li.unread").count()) === 0 ? true : undefined));
  assert.ok(server.items.every(({ readAt, archivedAt }) => readAt || archivedAt));
});

browse("a change that the server refuses is not shown as made", async () => {
  server.push();
  const page = await openPage();
  await badge(page, "1");
  await bell(page).click();
  server.refuse = 503;
  await page.getByRole("button", { name: "Archive: Number 1" }).click();
  await page.getByText("That could not be saved").waitFor();
  assert.deepEqual(await titles(page), ["Number 1"]);
  server.refuse = undefined;
  await page.getByRole("button", { name: "Archive: Number 1" }).click();
  await page.getByText("Nothing here yet").waitFor();
});

browse("two tabs share one stream, and the second goes on when the first is closed", async () => {
  const first = await openPage();
  await connected();
  const second = await openPage();
  server.push();
  await badge(first, "1");
  await badge(second, "1");
  assert.deepEqual(server.streams(), { open: 1, most: 1 });
  await first.close();
  await until(async () => (server.resumed.length === 2 ? true : undefined));
  server.push();
  await badge(second, "2");
  assert.deepEqual(await arrived(second), numbers(1, 2));
  assert.deepEqual(server.resumed, [undefined, "1:1"]);
});

browse("users of the same id in different tenants share nothing", async () => {
  await openPage({ tenant: "a" });
  await openPage({ tenant: "b" });
  await connected(2);
});

browse("nothing is missed when a tab that was never told an event takes over", async () => {
  const first = await openPage();
  await connected();
  const second = await openPage();
  await until(async () => (server.asked.filter((one) => /^GET .*u_17$/.test(one)).length === 2 ? true : undefined));
  server.refuse = 503;
  await first.close();
  await connected(0);
  server.push();
  server.refuse = undefined;
  await badge(second, "1");
  assert.deepEqual(await arrived(second), ["Number 1"]);
});

browse("after a reload the list and the count are as before", async () => {
  for (let n = 0; n < 3; n++) server.push();
  const page = await openPage();
  await badge(page, "3");
  await page.reload();
  await place(page, { "user-id": server.userId, token: "good" });
  await badge(page, "3");
  await bell(page).click();
  assert.deepEqual(await titles(page), ["Number 3", "Number 2", "Number 1"]);
  assert.deepEqual(await arrived(page), [], "what was there before is no arrival");
});

browse("with the server restarted twice under load, 500 arrive once each and in order", async () => {
  const pages = [await openPage(), await openPage()];
  await connected();
  for (let n = 1; n <= 500; n++) {
    server.push();
    if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    if (n === 150) await server.down();
    if (n === 220) await server.up();
    if (n === 350) server.cutStreams();
    if (n === 400) await server.down();
    if (n === 450) await server.up();
  }
  for (const page of pages) {
    await isTrue(page, "arrived.length >= 500");
    assert.deepEqual(await arrived(page), numbers(1, 500));
    await badge(page, "99+");
  }
  assert.equal(server.streams().most, 1);
  const [page] = pages;
  assert.ok(page);
  await page.bringToFront();
  await bell(page).click();
  await until(async () => {
    await scrollDown(page);
    return (await page.locator("li").count()) === 500 ? true : undefined;
  });
  assert.deepEqual(await titles(page), numbers(1, 500).reverse());
});

/** Scrolls until this many are drawn. */
const drawn = (page: Page, count: number) =>
  until(async () => {
    await scrollDown(page);
    return (await page.locator("li").count()) === count ? true : undefined;
  });

browse("a tab opened while the stream is away gets what is resumed in its place", async () => {
  const first = await openPage();
  await connected();
  server.push();
  await badge(first, "1");
  server.hasStreams = false;
  server.cutStreams();
  for (let n = 2; n <= 51; n++) server.push();
  const second = await openPage();
  await badge(second, "51");
  server.hasStreams = true;
  await isTrue(first, "arrived.length >= 51");
  server.push();
  await isTrue(second, "arrived.length >= 1");
  assert.deepEqual(await arrived(first), numbers(1, 52));
  assert.deepEqual(await arrived(second), ["Number 52"], "the others were there before it");
  for (const page of [first, second]) {
    await page.bringToFront();
    await bell(page).click();
    await drawn(page, 52);
    assert.deepEqual(await titles(page), numbers(1, 52).reverse());
  }
});

browse("a list loaded while the stream catches up puts nothing out of order", async () => {
  const page = await openPage();
  await connected();
  server.push();
  await badge(page, "1");
  await server.down();
  await bell(page).click();
  await inside(page, "inbox.refresh()");
  await page.getByText("Notifications could not be loaded").waitFor();
  for (let n = 2; n <= 51; n++) server.push();
  await server.up();
  await isTrue(page, "arrived.length >= 51");
  await banner(page).waitFor({ state: "hidden" });
  assert.deepEqual(await arrived(page), numbers(1, 51));
  await drawn(page, 51);
  assert.deepEqual(await titles(page), numbers(1, 51).reverse());
});

browse("a long list comes page by page, and what arrives meanwhile doubles nothing", async () => {
  for (let n = 0; n < 130; n++) server.push();
  const page = await openPage();
  await badge(page, "99+");
  await bell(page).click();
  assert.equal(await page.locator("li").count(), 20);
  await until(async () => {
    await scrollDown(page);
    if (server.items.length < 135) server.push();
    return (await page.locator("li").count()) === 135 ? true : undefined;
  });
  assert.deepEqual(await titles(page), numbers(1, 135).reverse());
});

browse("told to reset, it loads the list anew and tells what is new in it", async () => {
  server.push();
  const page = await openPage();
  await connected();
  server.push();
  await badge(page, "2");
  await server.down();
  server.newEpoch();
  server.push();
  await server.up();
  await badge(page, "3");
  await bell(page).click();
  await page.locator("li >> text=Number 3").waitFor();
  assert.deepEqual(await titles(page), ["Number 3", "Number 2", "Number 1"]);
  assert.deepEqual(await arrived(page), ["Number 2", "Number 3"]);
});

browse(
  "when its token runs out it asks the page once each time, and goes on with the new one where it stopped",
  async () => {
    const page = await openPage();
    await connected();
    server.push();
    await badge(page, "1");
    server.tokens = new Set(["new"]);
    server.cutStreams();
    await isTrue(page, "refused === 1");
    await bell(page).click();
    await page.getByText("Your session has ended").waitFor();
    server.push();
    const gets = () => server.asked.filter((one) => one.startsWith("GET")).length;
    let asked = gets();
    await page.getByRole("button", { name: "Try again" }).click();
    await until(async () => (gets() === asked + 2 ? true : undefined));
    await isTrue(page, "refused === 2");
    asked = gets();
    await inside(page, 'inbox.setAttribute("token", "new")');
    await badge(page, "2");
    // The list may know of it before the stream has brought it.
    await until(async () => ((await arrived(page)).length > 1 ? true : undefined));
    assert.deepEqual(await arrived(page), numbers(1, 2));
    assert.equal(
      await page.evaluate("refused"),
      2,
      "the list and the stream were both refused, the page was asked once",
    );
    await banner(page).waitFor({ state: "hidden" });
    assert.ok(gets() - asked < 8, "it did not hammer");
  },
);

browse("without a user it waits, and begins when it is told who", async () => {
  server.push();
  const page = await openPage({ "user-id": "", token: "" });
  assert.equal(await bell(page).getAttribute("aria-label"), "Notifications");
  assert.equal(await page.locator(".badge").isVisible(), false);
  await bell(page).click();
  await page.getByText("Loading").waitFor();
  await inside(page, `(inbox.token = "good", inbox.setAttribute("user-id", "${server.userId}"))`);
  await badge(page, "1");
  assert.equal(await page.evaluate("refused"), 0);
});

browse("without a token the session cookie counts", async () => {
  await context.addCookies([{ name: "session", value: "good", url: server.url }]);
  server.push();
  const page = await openPage({ token: "" });
  await badge(page, "1");
  await connected();
  await context.clearCookies();
});

browse("a link that would run a script is inert, others lead where they say", async () => {
  server.push({ title: "script", link: "javascript:window.harmed=true" });
  server.push({ title: "spaced", link: " java\nscript:window.harmed=true" });
  server.push({ title: "data", link: "data:text/html,<script>opener.harmed=true</script>" });
  server.push({ title: "relative", link: "/orders/17?a=1#b" });
  server.push({ title: "elsewhere", link: "https://example.com/" });
  const page = await openPage();
  await bell(page).click();
  await page.locator("li").first().waitFor();
  for (const title of ["script", "spaced", "data"]) {
    await page.locator("li button.main", { hasText: title }).click();
  }
  assert.equal(await page.evaluate("window.harmed"), undefined);
  assert.equal(page.url(), `${server.url}/`);
  const links = await inside(page, '[...root.querySelectorAll("li a")].map(({ href, rel }) => [href, rel])');
  assert.deepEqual(links, [
    ["https://example.com/", "noopener noreferrer"],
    [`${server.url}/orders/17?a=1#b`, ""],
  ]);
  await page.locator("li a", { hasText: "relative" }).click();
  await page.waitForURL("**/orders/17?a=1#b");
  await until(async () => (server.items[3]?.readAt ? true : undefined));
});

browse("a page may cancel the opening and go its own way", async () => {
  server.push({ link: "/orders/17" });
  const page = await openPage();
  await page.evaluate('addEventListener("carillon-open", (event) => event.preventDefault())');
  await bell(page).click();
  await page.locator("li a").click();
  assert.equal(page.url(), `${server.url}/`);
  assert.equal(await page.evaluate("opened[0].link"), `${server.url}/orders/17`);
});

browse("HTML in a title stays text", async () => {
  const title = `<img src=x onerror="window.harmed=true"><b>bold</b>&amp;`;
  server.push({ title, body: "<script>window.harmed=true</script>" });
  const page = await openPage();
  await bell(page).click();
  await page.locator("li").waitFor();
  assert.deepEqual(await titles(page), [title]);
  assert.equal(await page.locator("li img, li b, li script").count(), 0);
  assert.equal(await page.evaluate("window.harmed"), undefined);
});

browse("everything can be done with the keyboard, and the focus is never lost", async () => {
  for (let n = 0; n < 3; n++) server.push({ link: n === 0 ? "/first" : null });
  const page = await openPage();
  await badge(page, "3");
  const focused = () =>
    inside<string>(
      page,
      `root.activeElement === null ? document.activeElement.id
        : root.activeElement.querySelector(":scope > .title")?.textContent
          ?? (root.activeElement.getAttribute("aria-label") || root.activeElement.id)`,
    );
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
    return focused();
  };
  await page.locator("#before").focus();
  assert.equal(await press("Tab"), "Notifications, 3 unread");
  assert.equal(await bell(page).getAttribute("aria-expanded"), "false");
  assert.equal(await press("Enter"), "panel");
  assert.equal(await bell(page).getAttribute("aria-expanded"), "true");
  await page.locator("li").first().waitFor();
  assert.equal(await press("ArrowDown"), "Number 3");
  assert.equal(await press("ArrowDown"), "Number 2");
  assert.equal(await press("End"), "Number 1");
  assert.equal(await press("ArrowDown"), "Number 1");
  assert.equal(await press("Home"), "Number 3");
  assert.equal(await press("Tab"), "Mark as read: Number 3");
  await press("Space");
  await badge(page, "2");
  await page.getByRole("button", { name: "Mark as read: Number 3" }).waitFor({ state: "hidden" });
  assert.equal(await focused(), "Number 3", "its button is gone, the focus is on the notification");
  assert.equal(await press("Tab"), "Archive: Number 3");
  await press("Enter");
  await page.locator("li >> text=Number 3").waitFor({ state: "detached" });
  assert.equal(await focused(), "Number 2");
  server.push();
  await page.locator("li >> text=Number 4").waitFor();
  assert.equal(await focused(), "Number 2", "an arrival does not move the focus");
  assert.equal(await press("Escape"), "Notifications, 3 unread");
  assert.equal(await bell(page).getAttribute("aria-expanded"), "false");
  await press("Space", "End", "Tab", "Tab", "Tab");
  assert.equal(
    await bell(page).getAttribute("aria-expanded"),
    "false",
    "the focus went on, the panel is out of its way",
  );
  await bell(page).focus();
  await press("Space", "End");
  await page.keyboard.press("Space");
  await page.waitForURL("**/first");
});

browse("it says when it is empty, cannot load, lost the connection or is offline, and recovers", async () => {
  server.refuse = 500;
  const page = await openPage();
  await bell(page).click();
  await page.getByText("Notifications could not be loaded").waitFor();
  server.refuse = undefined;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Nothing here yet").waitFor();
  await connected();
  await server.down();
  await page.getByText("Connection lost, trying again").waitFor();
  await server.up();
  await banner(page).waitFor({ state: "hidden" });
  await context.setOffline(true);
  await page.getByText("You are offline").waitFor();
  await context.setOffline(false);
  await banner(page).waitFor({ state: "hidden" });
  server.push();
  await badge(page, "1");
});

browse("a category has its own list and its own count", async () => {
  server.push({ category: "orders" });
  server.push({ category: "news" });
  const page = await openPage({ category: "orders" });
  await badge(page, "1");
  await connected();
  server.push({ category: "news" });
  server.push({ category: "orders" });
  await badge(page, "2");
  await bell(page).click();
  assert.deepEqual(await titles(page), ["Number 4", "Number 1"]);
  assert.deepEqual(await arrived(page), ["Number 4"]);
});

browse("it follows the reader's colours and the page's words", async () => {
  const page = await openPage({ label: "Meldungen" });
  await inside(page, '(inbox.texts = { empty: "Noch nichts da" })');
  const colours = async (scheme: "light" | "dark") => {
    await page.emulateMedia({ colorScheme: scheme });
    return inside(page, 'getComputedStyle(root.querySelector(".panel")).backgroundColor');
  };
  await bell(page).click();
  await page.getByText("Noch nichts da").waitFor();
  assert.equal(await page.getByRole("dialog", { name: "Meldungen" }).count(), 1);
  assert.equal(await colours("light"), "rgb(255, 255, 255)");
  assert.equal(await colours("dark"), "rgb(27, 30, 37)");
  await inside(page, 'inbox.setAttribute("theme", "light")');
  assert.equal(await colours("dark"), "rgb(255, 255, 255)");
});

test("the module has at most 10 KB gzipped, needs nothing else, and does no harm on a server", async () => {
  const script = await browserScript("inbox");
  assert.ok(gzipSync(script).length <= 10_000, `${gzipSync(script).length} bytes`);
  assert.doesNotMatch(script, /^import\b|\bimport\(/m);
  const { CarillonInbox } = await import(`data:text/javascript,${encodeURIComponent(script)}`);
  assert.equal(typeof CarillonInbox, "function");
});

if (executable === undefined) {
  for (const { name } of inBrowser) test(name, { skip: NO_CHROMIUM });
} else {
  before(async () => {
    ({ context, close } = await openBrowser(executable));
  });
  after(() => close());
  afterEach(async () => {
    for (const page of context.pages()) await page.close();
    await server?.down();
  });
  for (const { name, run } of inBrowser) {
    test(name, { timeout: 180_000 }, async () => {
      complaints.length = 0;
      server = await startInboxStandIn();
      await run();
      assert.deepEqual(complaints, []);
    });
  }
}
