// The dashboard in a real browser with a whole Carillon behind it.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { BrowserContext } from "playwright-core";
import { browserScript } from "#http/pages/bundle.ts";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type Dashboard, openDashboard, signInWith } from "../support/dashboard.ts";
import { HOSTILE, NO_PHONE, startWorld, type World } from "../support/dashboard-world.ts";
import { ADMIN_KEY, type Service } from "../support/service.ts";
import { until } from "../support/until.ts";

const MOST_BYTES = 60_000;
const executable = await findChromium();
const inBrowser: { name: string; run: () => Promise<void> }[] = [];
/** Collected first, so that a machine without a browser can say how many tests it left out. */
const browse = (name: string, run: () => Promise<void>) => void inBrowser.push({ name, run });

let context: BrowserContext;
let service: Service;
let world: World;
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

const heading = (name: string | RegExp) => dashboard.page.getByRole("heading", { name, level: 1 }).waitFor();
const button = (name: string | RegExp) => dashboard.page.getByRole("button", { name, exact: typeof name === "string" });
const confirmed: Dashboard["confirm"] = (...asked) => dashboard.confirm(...asked);
const statusOf = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body.status;
const becomes = (read: () => Promise<boolean>) => until(async () => ((await read()) ? true : undefined));

browse("the overview says how things are", async () => {
  await dashboard.open("#/");
  await heading("Overview");
  await dashboard.page.getByText("Nothing is stopped").waitFor();
  // What happened is counted within about a second, and asked for again.
  await dashboard.page.getByRole("img", { name: /^Accepted, sent and failed a minute, at last: accepted/ }).waitFor();
  const plot = dashboard.page.locator(".plot").first();
  await plot.locator("svg").hover({ position: { x: 60, y: 60 } });
  await plot.locator(".pointed").waitFor({ state: "attached" });
  await dashboard.look("overview");
});

browse("figures that were reckoned and not counted are marked as such", async () => {
  const { page, open, look } = dashboard;
  const reckoned = { isEstimate: true, waiting: 1_234_567, scheduled: 20_001, depth: { urgent: 0, normal: 1_214_566 } };
  const untaken = [{ priority: "low", tenant: "default", channel: "sms", count: 1_000, oldestAgeMs: 5_000 }];
  for (const path of ["queue", "ledger"]) {
    await page.route(`**/v1/${path}`, async (route) => {
      const answer = await route.fetch();
      const { waiting, ...queue } = reckoned;
      const change = path === "queue" ? { ...queue, untaken } : { isEstimate: true, waiting };
      await route.fulfill({ response: answer, json: { ...(await answer.json()), ...change } });
    });
  }
  await open("#/messages");
  await open("#/");
  const figure = (name: string) => page.locator(".figures > div", { hasText: name });
  await figure("Waiting").getByText("≈ 1.2M").waitFor();
  await figure("Waiting")
    .getByText(/^by estimate, /)
    .waitFor();
  await figure("Planned").getByText("≈ 20K").waitFor();
  await page.getByText("≈ 1,234,567").waitFor();
  for (const title of ["Waiting, by lane", "Ledger"])
    await page.locator("section", { hasText: title }).getByText("by estimate").last().waitFor();
  await page.getByText("1,000+ notifications of default, low, sms").waitFor();
  await look("overview-estimate");
  await page.unrouteAll();
  await open("#/messages");
  await open("#/");
  await figure("Waiting").waitFor();
  // What it had read before may be there until it has read again.
  await until(async () => ((await page.getByText(/≈|by estimate/).count()) === 0 ? true : undefined));
});

browse("messages are listed, filtered, turned over and found by id", async () => {
  const { page, open, look } = dashboard;
  await open("#/messages");
  await page.getByRole("link", { name: "Your order 59 has shipped" }).waitFor();
  await look("messages");
  await button("Next page").click();
  await page.getByRole("link", { name: "Your order 1 has shipped" }).waitFor();
  await button("First page").click();
  await page.getByLabel("Status").selectOption("failed");
  await page.getByRole("link", { name: "Your invoice" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2, "the head and the one that failed");
  assert.match(page.url(), /status=failed/);
  await page.getByLabel("Channel").selectOption("slack");
  await page.getByText("Nothing matches").waitFor();
  for (const [by, text, found] of [
    ["address", "reader7@example.com", "Your order 7 has shipped"],
    ["template", "welcome", "template welcome"],
    ["error", "recipient is gone", "Your invoice"],
    ["user", "reader 8", "Your order 8 has shipped"],
  ] as const) {
    await open("#/messages");
    await page.getByLabel("Search by").selectOption(by);
    await page.getByRole("searchbox").fill(text);
    await button("Search").click();
    await page.getByRole("link", { name: found }).waitFor();
    await becomes(async () => (await page.getByRole("row").count()) === 2);
  }
  await page.keyboard.press("Escape");
  await page.locator("h1").click();
  await page.keyboard.press("/");
  await page.keyboard.type(world.ids.sent);
  await page.keyboard.press("Enter");
  await heading("template welcome");
});

browse("a message shows what happened, what its reader saw, and what would become of it now", async () => {
  const { page, open, look } = dashboard;
  await open(`#/messages/${world.ids.sent}`);
  await heading("template welcome");
  await page.getByRole("img", { name: /Timeline: accepted, .*sent/ }).waitFor();
  const mail = page.frameLocator("iframe");
  await mail.getByRole("heading", { name: "Hello Ada, welcome to the house" }).waitFor();
  await button("Explain").click();
  await page.getByText("Would be sent").waitFor();
  await look("message");
  await button("Text").click();
  await page.getByRole("region", { name: "Text of the mail" }).getByText("Hello Ada").waitFor();
});

browse("what failed is retried and what waits is cancelled, each after a question that says how many", async () => {
  const { page, open, look } = dashboard;
  await open(`#/messages/${world.ids.failed}`);
  const before = (await service.ask("GET", `/v1/notifications/${world.ids.failed}`)).body.events.length;
  await button("Retry").click();
  await look("message-retry");
  await confirmed("Retry", /^1 notification, to refused@example.com/, /1 notification is on its way again/);
  await becomes(
    async () => (await service.ask("GET", `/v1/notifications/${world.ids.failed}`)).body.events.length > before,
  );
  await open(`#/messages/${world.ids.pending}`);
  await button("Cancel").click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel", exact: true }).click();
  assert.equal(await statusOf(world.ids.pending), "pending", "who says no has done nothing");
  await button("Cancel").click();
  await confirmed("Cancel the notification", /^1 notification, to \+33612345678/, /1 notification was cancelled/);
  assert.equal(await statusOf(world.ids.pending), "cancelled");
  await page.getByText("cancelled").first().waitFor();
});

browse(
  "a message cannot do anything to who looks at it, and nothing is fetched for it until somebody asks",
  async () => {
    const { page, open, look } = dashboard;
    const { asked } = world.elsewhere;
    await open(`#/messages/${world.ids.hostile}`);
    await page.getByRole("heading", { name: HOSTILE.slice(0, 30) }).waitFor();
    const mail = page.frameLocator("iframe");
    await mail.getByRole("heading", { name: "News" }).waitFor();
    assert.equal(await mail.locator("script, meta[http-equiv]").count(), 0);
    await look("message-hostile");
    await mail.getByRole("link", { name: "bad link" }).click();
    await page.getByText("which is not opened from here").waitFor();
    assert.equal(await page.locator("a[href^='javascript:']").count(), 0);
    await mail.getByRole("link", { name: "good link" }).click();
    await page.getByRole("link", { name: "https://example.com/offer" }).waitFor();
    await mail.getByRole("button", { name: "Give" }).click();
    assert.deepEqual(asked, []);
    await button("Load images").click();
    await becomes(async () => asked.length > 0);
    assert.deepEqual([...new Set(asked)], ["/pixel.png"]);
    assert.doesNotMatch(await page.title(), /owned/);
    await becomes(async () => dashboard.ofMails.some((text) => /inline event handler/.test(text)));
  },
);

browse("dead letters are listed by cause, and those of a cause one by one", async () => {
  const { page, open, look } = dashboard;
  await becomes(async () => (await statusOf(world.ids.failed)) === "failed");
  await open("#/dead-letters");
  const causes = page.getByRole("table", { name: "Causes" });
  await causes.getByRole("link", { name: "the recipient is gone" }).waitFor();
  await look("dead-letters");
  await causes.getByRole("link", { name: "the recipient is gone" }).click();
  await page
    .getByRole("table", { name: "Dead letters" })
    .getByRole("link", { name: "the recipient is gone" })
    .waitFor();
  assert.match(page.url(), /cause=/);
});

browse(
  "dead letters are sent again by a plan: counted, tried with a few, aborted; another takes them off the list",
  async () => {
    const { page, look } = dashboard;
    const { failed } = world.ids;
    const eventsOf = async () => (await service.ask("GET", `/v1/notifications/${failed}`)).body.events.length;
    const before = await eventsOf();
    await button("Plan to send again…").click();
    await confirmed("Count them", /^Those of this filter are counted/, /What it is for/);
    await heading(/^Send again: /);
    assert.equal(await eventsOf(), before, "nothing is done yet");
    await button("Try 1 first").click();
    await confirmed("Try 1 first", /^1 notification of 1 are sent again now/, /1 notification first/);
    await becomes(async () => (await eventsOf()) > before);
    await page.getByRole("heading", { name: "The first 1" }).waitFor();
    await look("plan");
    await page.getByRole("link", { name: "Plans" }).last().click();
    await page.getByRole("link", { name: /^Send again: / }).waitFor();
    await look("plans");

    await becomes(async () => (await statusOf(failed)) === "failed");
    await dashboard.open("#/dead-letters");
    await button("Plan to purge…").click();
    await confirmed("Count them", /^Those of this filter/, /What it is for/);
    await heading("Take off the list");
    await button("Abort").click();
    await confirmed("Abort", /Nothing more is done with the 1 notification/, /The plan is aborted/);
    await button("Abort").waitFor({ state: "detached" });
  },
);

browse("a plan is tried with a few and goes on; another is applied to all at once", async () => {
  const { page, open, look } = dashboard;
  const notifications = Array.from({ length: 12 }, (_, n) => ({
    ...{ channel: "sms", recipient: { phone: NO_PHONE }, content: { body: `Number ${n}` } },
  }));
  const isDead = async () =>
    (await service.ask("GET", "/v1/dead-letters?channel=sms&limit=50")).body.data.length === 12;
  await service.ask("POST", "/v1/notifications/batch", { notifications });
  await becomes(isDead);
  await open("#/dead-letters?channel=sms");
  await button("Plan to send again…").click();
  await confirmed("Count them", /^Those of this filter/, /What it is for/);
  await button("Try 10 first").click();
  await confirmed("Try 10 first", /^10 notifications of 12 are sent again now/, /10 notifications first/);
  await button("Go on").click();
  await look("plan-go-on");
  await confirmed("Go on", /^The other 2 notifications are sent again\.$/, /The plan goes on/);
  await page.getByText("100 %").waitFor();
  await page.locator("h1 + .status", { hasText: "done" }).waitFor();
  await look("plan-done");

  await becomes(isDead);
  await open("#/dead-letters?channel=sms");
  await button("Plan to purge…").click();
  await confirmed("Count them", /^Those of this filter/, /What it is for/);
  await button("Apply to all").click();
  await look("plan-apply");
  await confirmed("Apply to all", /^12 notifications are taken off the list, at most/, /The plan is under way/);
  await page.locator("h1 + .status", { hasText: "done" }).waitFor();
  assert.deepEqual((await service.ask("GET", "/v1/dead-letters?channel=sms")).body.data, []);
});

browse("what went over the wire in an attempt that failed is shown, as text", async () => {
  const { page, open, look } = dashboard;
  const { body } = await service.ask("POST", "/v1/notifications", {
    ...{ channel: "webhook", recipient: { webhookUrl: world.refusing }, content: { body: HOSTILE } },
  });
  await becomes(async () => (await statusOf(body.notificationId)) === "failed");
  await open(`#/messages/${body.notificationId}`);
  await page.getByText("What went over the wire in attempt 1").click();
  await page.getByRole("region", { name: "Request of attempt 1" }).getByText("onerror").waitFor();
  await page.getByRole("heading", { name: "Answer, 410" }).waitFor();
  await page.getByRole("region", { name: "Answer to attempt 1" }).getByText("Gone: <img src=x").waitFor();
  assert.doesNotMatch(await page.title(), /owned/);
  assert.equal(await page.locator("main img, main script").count(), 0);
  await look("message-exchange");
});

browse(
  "a schedule shows its next ten times, is paused, resumed and ended; a reminder its plan, and is forgotten",
  async () => {
    const { page, open, look } = dashboard;
    await open("#/schedules");
    await button("dentist").click();
    await page.getByRole("table", { name: "Plan of dentist" }).getByText("planned").first().waitFor();
    await look("schedules");
    await page.getByRole("link", { name: "morning" }).click();
    await heading("morning");
    await page.locator("ol li").nth(9).waitFor();
    await look("schedule");
    await button("Pause").click();
    await confirmed("Pause", /^1 schedule, morning/, /1 schedule is paused/);
    await page.getByText("It is paused, or has come to its end.").waitFor();
    await button("Resume").click();
    await confirmed("Resume", /^1 schedule, morning/, /1 schedule goes on/);
    await button("End").click();
    await confirmed("End the schedule", /^1 schedule, morning/, /1 schedule was ended/);
    await page.getByText("No schedules yet").waitFor();
    await button("Forget dentist").click();
    await confirmed("Forget the reminder", /^1 reminder, dentist/, /1 reminder was forgotten/);
    await page.getByText("No reminders yet").waitFor();
  },
);

browse("a provider is tested, paused with a reason, and resumed", async () => {
  const { page, open, look } = dashboard;
  await open("#/providers");
  await page.getByRole("heading", { name: "mail" }).waitFor();
  await look("providers");
  await button("Test mail").click();
  await confirmed("Test", /Whether 1 provider can be reached/, /mail is well/);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await button("Pause mail").click();
  await confirmed("Pause", /^1 provider is passed over/, /mail is paused/, "they are down");
  await page.getByText("they are down").waitFor();
  await button("Resume mail").click();
  await confirmed("Resume", /^1 provider is used again/, /mail goes on/);
  await button("Pause mail").waitFor();
});

browse("a template is previewed with sample data, and another of its versions made active", async () => {
  const { page, open, look } = dashboard;
  await open("#/templates");
  const listed = page.getByRole("table", { name: "Templates" });
  await listed.getByRole("row", { name: /^welcome Welcome email 2 2 / }).waitFor();
  await look("templates");
  await listed.getByRole("link", { name: "welcome" }).click();
  await heading("Welcome");
  await page.getByLabel("Sample data, as JSON").fill("{ nonsense");
  await button("Show").click();
  await page.getByText("The sample data is not JSON.").waitFor();
  await page.getByLabel("Sample data, as JSON").fill(`{ "name": ${JSON.stringify(HOSTILE)}, "place": "here" }`);
  await button("Show").click();
  await page.frameLocator("iframe").getByText("We are glad.").waitFor();
  await look("template");
  await button("Activate version 1").click();
  await confirmed("Activate", /^1 template: what is sent/, /Version 1 is active/);
  await button("Activate version 2").waitFor();
});

browse(
  "a user is looked up: messages, inbox and devices; addresses are suppressed and lifted; a person is forgotten",
  async () => {
    const { page, open, look } = dashboard;
    await open("#/users");
    await page.getByRole("cell", { name: "nobody@example.com", exact: true }).waitFor();
    await page.getByLabel("Address to suppress").fill("eve@example.com");
    await button("Suppress").click();
    await confirmed("Suppress", /1 address/, /1 address is suppressed/);
    await button("Lift eve@example.com").click();
    await confirmed("Lift", /1 address/, /1 address may be sent to again/);
    await button("Lift eve@example.com").waitFor({ state: "detached" });
    await look("users");
    await page.getByLabel("User id").fill("ada");
    await page.keyboard.press("Enter");
    await page.getByRole("table", { name: "Inbox" }).getByText("onerror").waitFor();
    await page.getByRole("table", { name: "Devices" }).getByText("phone-1").waitFor();
    await look("user");
    await button("Forget this person").click();
    await confirmed("Forget them", /1 user/, /1 user is being forgotten/);
  },
);

browse(
  "an endpoint shows what was delivered; is tested, paused, resumed, gets a new secret, and is deleted",
  async () => {
    const { page, open, look } = dashboard;
    await open("#/endpoints");
    const listed = page.getByRole("table", { name: "Endpoints" });
    await listed.getByRole("row", { name: /hook active everything/ }).waitFor();
    await look("endpoints");
    await listed.getByRole("link", { name: /hook/ }).click();
    await page.getByRole("table", { name: "Deliveries" }).getByText("notification.").first().waitFor();
    await look("endpoint");
    await button("Test").click();
    await confirmed("Test", /^1 event of the type endpoint.test/, /The receiver took it/);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await button("Pause").click();
    await confirmed("Pause", /Nothing more is sent to 1 endpoint/, /1 endpoint is paused/, "a test");
    await button("Resume").click();
    await confirmed("Resume", /^1 endpoint/, /1 endpoint goes on/);
    await button("Send failed ones again").click();
    await page
      .getByRole("dialog")
      .getByText(/^0 callbacks failed for good/)
      .waitFor();
    await page.keyboard.press("Escape");
    await button("Rotate secret").click();
    await confirmed("Rotate", /^1 endpoint/, /whsec_/);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await button("Delete").click();
    await confirmed("Delete", /^1 endpoint/, /1 endpoint was deleted/);
    await heading("Endpoints");
    await look("endpoints-empty");
  },
);

browse("workers and the database say how they are", async () => {
  await dashboard.open("#/house");
  await dashboard.page.getByRole("table", { name: "Workers" }).getByText("alive").waitFor();
  await dashboard.page.getByText(/^PostgreSQL \d+$/).waitFor();
  await dashboard.look("house");
});

browse("a key is made, shown once and revoked, and the audit log says who did it", async () => {
  const { page, open, look } = dashboard;
  await open("#/keys");
  await page.getByLabel("Name of a new key").fill("The shop");
  await page.getByLabel("send", { exact: true }).check();
  await button("Make a key").click();
  await confirmed("Make it", /1 key/, /ck_[a-z0-9]{12}_/);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await becomes(async () => !/ck_[a-z0-9]{12}_[a-z0-9]{48}/.test(await page.content()));
  await button("Revoke The shop").click();
  await confirmed("Revoke", /1 key/, /1 key was revoked/);
  await page.getByLabel("What", { exact: true }).fill("key");
  await button("Search").click();
  const log = page.getByRole("table", { name: "Audit log" });
  await log.getByText("key.revoke").waitFor();
  await log.getByText("signed in").first().waitFor();
  await look("keys");
});

browse("the keyboard leads everywhere", async () => {
  const { page, open } = dashboard;
  await open("#/nowhere");
  await page.getByText("There is no such page").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await heading("Overview");
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.getByRole("link", { name: "Your order 59 has shipped" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.getByRole("table", { name: "Events" }).waitFor();
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
    world = await startWorld();
    service = world.service;
    dashboard = await openDashboard(context, service);
    undo.push(browser.close, world.stop);
  });
  afterEach(() => assert.deepEqual(dashboard.complaints.splice(0), []));
  after(async () => {
    for (const step of undo) await step();
  });
  for (const { name, run } of inBrowser) {
    test(name, { timeout: 600_000 }, () => run().catch(dashboard.tellOf(name)));
  }
}
