// Templates by HTTP, and what a worker makes of a request that names one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createIds } from "#domain/ids.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { createAuthenticate } from "#http/core/authenticate.ts";
import { createServer } from "#http/core/server.ts";
import { templateRoutes } from "#http/routes/templates.ts";
import { createLog } from "#telemetry/log.ts";
import { createMetrics } from "#telemetry/metrics.ts";
import { createTemplates, type Templates } from "#templates/load.ts";
import { createRenderer } from "#templates/renderer.ts";
import { ADMIN_KEY, type AskOptions, asking, type Service, startService } from "../support/service.ts";

let service: Service;
let ask: Service["ask"];
let templates: Templates;
/** As another process sees it: with a cache of its own, and a clock that the test moves. */
let elsewhere: Templates;
let elsewhereMs = 0;
let queries = 0;
const renderer = createRenderer({ threads: 1 });
const closes: (() => Promise<unknown>)[] = [];

async function serve(served: Templates): Promise<Service["ask"]> {
  const pool = service.db;
  const auth = createAuthenticate({ db: pool, fixedKey: ADMIN_KEY, now: Date.now, onFailure: () => {} });
  const rest = { newRequestId: createIds(), isStopping: () => false };
  const app = createServer(
    { log: createLog("silent"), metrics: createMetrics(), auth, ...rest },
    templateRoutes({ pool, templates: served }),
  );
  closes.push(() => app.close());
  return asking(await app.listen({ host: "127.0.0.1", port: 0 }));
}

before(async () => {
  service = await startService();
  const pool = service.db;
  templates = createTemplates({ db: pool, renderer, now: Date.now });
  const counting = Object.assign(Object.create(pool), {
    query: (...args: Parameters<typeof pool.query>) => {
      queries += 1;
      return pool.query(...args);
    },
  });
  elsewhere = createTemplates({ db: counting, renderer, now: () => elsewhereMs });
  ask = await serve(templates);
});
after(async () => {
  for (const close of closes) await close();
  await renderer.close();
  await service.stop();
});

const put = async (id: string, body: object, options?: AskOptions) => {
  const answer = await ask("PUT", `/v1/templates/${id}`, { channel: "email", name: "A name", ...body }, options);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
};
const refused = async (id: string, body: object) => {
  const answer = await ask("PUT", `/v1/templates/${id}`, { channel: "email", name: "A name", ...body });
  assert.equal(answer.status, 422, JSON.stringify(answer.body));
  assert.equal((await ask("GET", `/v1/templates/${id}`)).status, 404, "nothing was stored");
  return answer.body.errors as { path: string; message: string }[];
};
const preview = (id: string, body: object = {}, options?: AskOptions) =>
  ask("POST", `/v1/templates/${id}/preview`, body, options);
const request = (
  content: NotificationRequest["content"],
  more: Partial<NotificationRequest> = {},
): NotificationRequest => ({
  channel: "email",
  recipient: { email: "ada@example.com" },
  content,
  ...more,
});
const content = (rendered: Awaited<ReturnType<Templates["render"]>>) => {
  assert.ok("request" in rendered, JSON.stringify(rendered));
  return rendered.request.content;
};
const failure = (rendered: Awaited<ReturnType<Templates["render"]>>) => {
  assert.ok("error" in rendered, JSON.stringify(rendered));
  return rendered.error;
};
const DEFAULT_TENANT = 1;

test("a template is stored, read, listed and deleted", async () => {
  const stored = await put("welcome", { content: { subject: "Hi {{ name }}", textBody: "Hello" } });
  const { createdAt, ...rest } = stored;
  assert.match(createdAt, /^\d{4}-.*Z$/);
  assert.deepEqual(rest, {
    id: "welcome",
    version: 1,
    isActive: true,
    activeVersion: 1,
    latestVersion: 1,
    channel: "email",
    name: "A name",
    engine: "liquid",
    strict: false,
    content: { subject: "Hi {{ name }}", textBody: "Hello" },
  });
  assert.deepEqual((await ask("GET", "/v1/templates/welcome")).body, stored);
  await put("a-first", { content: { subject: "s" } });
  const page = (await ask("GET", "/v1/templates?limit=1")).body;
  assert.deepEqual([page.data.length, page.data[0].id, page.nextCursor], [1, "a-first", "a-first"]);
  const { content: _, ...listed } = stored;
  const next = (await ask("GET", "/v1/templates?limit=1&cursor=a-first")).body;
  assert.deepEqual(next, { data: [listed], nextCursor: null });
  assert.equal((await ask("DELETE", "/v1/templates/a-first")).status, 204);
  assert.equal((await ask("DELETE", "/v1/templates/a-first")).status, 404);
  assert.equal((await ask("GET", "/v1/templates/a-first")).status, 404);
  assert.deepEqual((await ask("GET", "/v1/templates")).body.data, [listed]);
});

test("the newest version is active unless it was put aside, and any can be activated", async () => {
  const version = (n: number, more: object = {}) => put("v", { content: { subject: `Version ${n}` }, ...more });
  assert.equal((await version(1, { activate: false })).activeVersion, 1, "the first is active in any case");
  assert.equal((await version(2)).activeVersion, 2);
  const third = await version(3, { activate: false });
  assert.deepEqual([third.version, third.isActive, third.activeVersion, third.latestVersion], [3, false, 2, 3]);
  const subject = async (query = "") => (await ask("GET", `/v1/templates/v${query}`)).body.content?.subject;
  assert.equal(await subject(), "Version 2");
  assert.equal(await subject("?version=3"), "Version 3");
  const activated = await ask("POST", "/v1/templates/v/activate", { version: 1 });
  assert.deepEqual([activated.status, activated.body.content.subject], [200, "Version 1"]);
  assert.equal(await subject(), "Version 1");
  assert.equal((await preview("v")).body.content.subject, "Version 1");
  assert.equal((await preview("v", { version: 3 })).body.content.subject, "Version 3");
  assert.equal((await ask("POST", "/v1/templates/v/activate", { version: 4 })).status, 404);
  assert.equal((await preview("v", { version: 4 })).status, 404);

  const { body } = await ask("GET", "/v1/templates/v/versions?limit=2");
  const brief = ({ version, isActive }: { version: number; isActive: boolean }) => [version, isActive];
  assert.deepEqual(body.data.map(brief), [
    [3, false],
    [2, false],
  ]);
  const rest = (await ask("GET", `/v1/templates/v/versions?limit=2&cursor=${body.nextCursor}`)).body;
  assert.deepEqual([rest.data.map(brief), rest.nextCursor], [[[1, true]], null]);
  assert.equal((await ask("GET", "/v1/templates/nobody/versions")).status, 404);

  assert.equal((await ask("DELETE", "/v1/templates/v")).status, 204);
  assert.equal((await ask("GET", "/v1/templates/v?version=2")).status, 404);
  assert.equal((await ask("GET", "/v1/templates/v/versions")).status, 404);
  assert.equal((await ask("GET", "/v1/templates/v/versions?cursor=3")).status, 404);
  const again = await put("v", { channel: "sms", content: { body: "b" } });
  assert.deepEqual([again.version, again.activeVersion], [4, 4], "numbers are not used again");
  assert.equal((await ask("POST", "/v1/templates/v/activate", { version: 3 })).status, 404);
});

test("storing what the latest version says already makes no new version, whoever is first", async () => {
  const same = { content: { subject: "s", textBody: "{{ a }}" }, strict: true };
  const all = await Promise.all(Array.from({ length: 6 }, () => put("same", same)));
  assert.deepEqual(new Set(all.map(({ version }) => version)), new Set([1]));
  const reordered = { content: { textBody: "{{ a }}", subject: "s" }, strict: true };
  assert.equal((await put("same", reordered)).version, 1, "the order of fields says nothing");
  for (const [version, more] of [
    [2, { ...same, name: "Another" }],
    [3, { ...same, strict: false }],
    [4, { ...same, content: { subject: "s" } }],
  ] as const) {
    assert.equal((await put("same", more)).version, version);
  }
  assert.equal((await ask("POST", "/v1/templates/same/activate", { version: 1 })).status, 200);
  const aside = await put("same", { ...same, content: { subject: "s" }, activate: false });
  assert.deepEqual([aside.version, aside.activeVersion], [4, 1]);
  const active = await put("same", { ...same, content: { subject: "s" } });
  assert.deepEqual([active.version, active.activeVersion], [4, 4], "but it is sent from now on");
  assert.equal((await ask("DELETE", "/v1/templates/same")).status, 204);
  assert.equal((await put("same", { ...same, content: { subject: "s" } })).version, 5, "after a deletion it is new");
});

test("versions that are stored at once all get a number of their own", async () => {
  const all = await Promise.all(Array.from({ length: 12 }, (_, n) => put("race", { content: { subject: `${n}` } })));
  assert.deepEqual(
    all.map(({ version }) => version).sort((a, b) => a - b),
    Array.from({ length: 12 }, (_, n) => n + 1),
  );
  assert.equal((await ask("GET", "/v1/templates/race")).body.version, 12);
});

test("a template keeps its channel", async () => {
  await put("kept", { content: { subject: "s" } });
  const { status, body } = await ask("PUT", "/v1/templates/kept", {
    channel: "sms",
    name: "n",
    content: { body: "b" },
  });
  assert.deepEqual([status, body.errors[0].path], [422, "/channel"]);
  assert.equal((await ask("GET", "/v1/templates/kept")).body.latestVersion, 1);
});

test("what cannot be parsed is refused with its path and line, and nothing is stored", async () => {
  assert.deepEqual(await refused("broken", { content: { subject: "fine", textBody: "one\n{% if a %}" } }), [
    { path: "/content/textBody", message: "does not render: line 2: tag {% if a %} not closed" },
  ]);
  const locales = { default: { subject: "s" }, fr: { subject: "{{ a | nope }}", htmlBody: "\n{{" } };
  assert.deepEqual(
    (await refused("broken", { content: { locales } })).map(({ path }) => path),
    ["/content/locales/fr/subject", "/content/locales/fr/htmlBody"],
  );
  const [mjml] = await refused("broken", {
    content: { subject: "s", mjml: "<mjml>\n<mj-body>\n<mj-odd/></mj-body></mjml>" },
  });
  assert.deepEqual([mjml?.path, mjml?.message.includes("line 3: <mj-odd>")], ["/content/mjml", true]);
  await put("whole", { content: { subject: "s" } });
  for (const name of ["absent", "whole"]) {
    assert.deepEqual(await refused("broken", { content: { subject: `\n{% render '${name}' %}` } }), [
      { path: "/content/subject", message: `does not render: line 2: there is no partial ${name}` },
    ]);
  }
});

test("bad input is refused with each fault named", async () => {
  const paths = async (body: object) => (await refused("bad", body)).map(({ path }) => path).sort();
  assert.deepEqual(await paths({ channel: "pigeon", name: "", colour: 1, content: { subject: 7, font: "x" } }), [
    "/channel",
    "/colour",
    "/content/font",
    "/content/subject",
    "/name",
  ]);
  assert.deepEqual(await paths({ content: {} }), ["/content"]);
  assert.deepEqual(await paths({ content: { subject: "s", body: "b" } }), ["/content/body"]);
  assert.deepEqual(await paths({ content: { locales: { fr: { subject: "s" } } } }), ["/content/locales/default"]);
  assert.deepEqual(await paths({ content: { locales: { default: { subject: 7, font: "x" }, fr: "text" } } }), [
    "/content/locales/default/font",
    "/content/locales/default/subject",
    "/content/locales/fr",
  ]);
  assert.deepEqual(await paths({ content: { subject: "s" }, engine: "jinja" }), ["/engine"]);
  assert.equal((await ask("PUT", "/v1/templates/a%20b", {})).status, 422);
  assert.equal((await preview("nobody")).status, 404);
  await put("good", { content: { subject: "s" } });
  assert.equal((await preview("good", { variables: [] })).status, 422);
  assert.equal((await preview("good", { locale: "not a locale" })).status, 422);
  assert.equal((await ask("POST", "/v1/templates/good/activate", { version: 0 })).status, 422);
});

test("a preview shows what a recipient would read", async () => {
  await put("p", {
    content: {
      locales: {
        default: { subject: "Hi {{ name }}", htmlBody: "<p>{{ name }}</p>" },
        fr: { subject: "Salut {{ name }} ({{ recipient.userId }})", htmlBody: "<p>{{ name }}</p>" },
      },
    },
  });
  const variables = { name: "<Ada>" };
  assert.deepEqual((await preview("p", { variables, locale: "fr-CA", recipient: { userId: "u1" } })).body, {
    id: "p",
    version: 1,
    locale: "fr",
    content: { subject: "Salut <Ada> (u1)", htmlBody: "<p>&lt;Ada&gt;</p>" },
  });
  assert.equal((await preview("p", { variables, recipient: { locale: "de" } })).body.locale, "default");
  await put("strict", { strict: true, content: { subject: "a", textBody: "\n{{ b }}" } });
  const { status, body } = await preview("strict");
  assert.deepEqual(
    [status, body.errors],
    [422, [{ path: "/content/textBody", message: "does not render: line 2: undefined variable: b" }]],
  );
});

test("partials come in versions and languages too, and a change of one is seen by what includes it", async () => {
  const footer = (body: string, fr: string) =>
    put("footer", { channel: "partial", content: { locales: { default: { body }, fr: { body: fr } } } });
  await put("name", { channel: "partial", content: { body: "{{ who }}" } });
  await footer("Bye {% render 'name', who: who %}", "Salut {% render 'name', who: who %}");
  await put("with", { content: { subject: "s", textBody: "{% render 'footer', who: name %}" } });
  const shown = async (locale: string) =>
    (await preview("with", { variables: { name: "Ada" }, locale })).body.content.textBody;
  assert.deepEqual([await shown("en"), await shown("fr")], ["Bye Ada", "Salut Ada"]);
  const sent = async () =>
    content(await templates.render(DEFAULT_TENANT, request({ templateId: "with", variables: { name: "Ada" } })))
      .textBody;
  assert.equal(await sent(), "Bye Ada");
  await footer("Later {{ who }}", "x");
  assert.deepEqual([await shown("en"), await sent()], ["Later Ada", "Later Ada"]);
  assert.match(
    failure(await templates.render(DEFAULT_TENANT, request({ templateId: "footer" }))).message,
    /is for partial, not email/,
  );
});

test("a request that names a template comes back with what is to be sent", async () => {
  await put("order", {
    content: {
      locales: {
        default: { subject: "Order {{ n }}", textBody: "For {{ recipient.email }}" },
        fr: { subject: "Commande {{ n }}\r\nBcc: x@example.com", textBody: "Pour {{ recipient.email }}" },
      },
    },
  });
  const given = request({ templateId: "order", variables: { n: 17 }, subject: "given", htmlBody: "<p>given</p>" });
  const rendered = await templates.render(DEFAULT_TENANT, { ...given, metadata: { a: 1 } });
  assert.deepEqual(rendered, {
    request: {
      ...given,
      metadata: { a: 1 },
      content: { subject: "Order 17", textBody: "For ada@example.com", htmlBody: "<p>given</p>" },
    },
  });
  const french = { recipient: { email: "ada@example.com", locale: "fr-CA" } };
  assert.equal(
    content(await templates.render(DEFAULT_TENANT, { ...given, ...french })).subject,
    "Commande 17 Bcc: x@example.com",
    "no line break gets into a header",
  );
  const plain = request({ subject: "s", textBody: "{{ not a template }}" });
  assert.deepEqual(await templates.render(DEFAULT_TENANT, plain), { request: plain });
  await put("tokens", {
    channel: "push",
    content: { title: "{{ recipient.userId }}", body: "[{{ recipient.deviceTokens }}]" },
  });
  const push = { channel: "push" as const, recipient: { userId: "u1", deviceTokens: ["secret"] } };
  assert.deepEqual(content(await templates.render(DEFAULT_TENANT, request({ templateId: "tokens" }, push))), {
    title: "u1",
    body: "[]",
  });
  const printed = { channel: "console" as const };
  assert.equal(content(await templates.render(DEFAULT_TENANT, { ...given, ...printed })).subject, "Order 17");
});

test("what cannot be sent is an error: no template, another channel, an empty or impossible result", async () => {
  const rendering = (given: NotificationRequest) => templates.render(DEFAULT_TENANT, given);
  assert.deepEqual(failure(await rendering(request({ templateId: "never" }))), {
    message: "there is no template never",
  });
  await put("thin", { content: { subject: "{{ s }}", textBody: "{{ t }}" } });
  assert.deepEqual(failure(await rendering(request({ templateId: "thin", templateVersion: 9 }))), {
    message: "there is no version 9 of template thin",
  });
  const sms = { channel: "sms" as const, recipient: { phone: "+33612345678" } };
  assert.match(failure(await rendering(request({ templateId: "thin" }, sms))).message, /is for email, not sms/);
  const empty = failure(await rendering(request({ templateId: "thin", variables: { s: " ", t: "x" } })));
  assert.deepEqual([empty.field, empty.why], ["subject", undefined]);
  const long = failure(await rendering(request({ templateId: "thin", variables: { s: "x".repeat(999), t: "x" } })));
  assert.match(long.message, /^\/content\/subject must have at most 998 characters/);
});

test("another process reads a template once in five seconds, and a version that was named stays", async () => {
  const given = request({ templateId: "cached", textBody: "t" });
  const subject = async (of = given) => content(await elsewhere.render(DEFAULT_TENANT, of)).subject;
  await put("cached", { content: { subject: "one" } });
  queries = 0;
  for (let n = 0; n < 20; n++) assert.equal(await subject(), "one");
  assert.equal(queries, 1);
  await put("cached", { content: { subject: "two" } });
  elsewhereMs += 4_999;
  assert.equal(await subject(), "one");
  elsewhereMs += 1;
  assert.equal(await subject(), "two");
  assert.equal(await subject(request({ templateId: "cached", templateVersion: 1, textBody: "t" })), "one");
});

test("an outage is thrown, not remembered", async () => {
  await put("away", { content: { subject: "s", textBody: "t" } });
  let isAway = true;
  const db = Object.assign(Object.create(service.db), {
    query: (...args: Parameters<typeof service.db.query>) =>
      isAway ? Promise.reject(new Error("Connection terminated")) : service.db.query(...args),
  });
  const own = createTemplates({ db, renderer, now: () => 0 });
  await assert.rejects(own.render(DEFAULT_TENANT, request({ templateId: "away" })), /terminated/);
  isAway = false;
  assert.equal(content(await own.render(DEFAULT_TENANT, request({ templateId: "away" }))).subject, "s");
});

test("tenants do not see each other's templates, nor include their partials", async () => {
  const key = await service.makeKey({ tenant: "other", scopes: ["admin", "read"] });
  const other = { key };
  await put("mine", { content: { subject: "s" } });
  await put("shared", { channel: "partial", content: { body: "secret" } });
  assert.deepEqual((await ask("GET", "/v1/templates", undefined, other)).body.data, []);
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["GET", "/versions", undefined],
    ["POST", "/preview", {}],
    ["POST", "/activate", { version: 1 }],
    ["DELETE", "", undefined],
  ] as const) {
    assert.equal((await ask(method, `/v1/templates/mine${path}`, body, other)).status, 404, `${method} ${path}`);
  }
  const body = { channel: "email", name: "n", content: { subject: "{% render 'shared' %}" } };
  assert.equal((await ask("PUT", "/v1/templates/thief", body, other)).status, 422);
  assert.equal((await put("mine", { content: { subject: "theirs" } }, other)).version, 1);
  assert.equal((await ask("GET", "/v1/templates/mine")).body.content.subject, "s");
});

test("reading needs the scope read, changing needs admin", async () => {
  const key = await service.makeKey({ scopes: ["read"] });
  const sender = await service.makeKey({ scopes: ["send"] });
  const body = { channel: "sms", name: "n", content: { body: "b" } };
  assert.equal((await ask("GET", "/v1/templates", undefined, { key })).status, 200);
  assert.equal((await ask("GET", "/v1/templates", undefined, { key: sender })).status, 403);
  assert.equal((await ask("PUT", "/v1/templates/x", body, { key })).status, 403);
  assert.equal((await ask("POST", "/v1/templates/x/activate", { version: 1 }, { key })).status, 403);
  assert.equal((await ask("DELETE", "/v1/templates/x", undefined, { key })).status, 403);
});

test("without a thread to render it, a template is neither stored nor called wrong", async () => {
  const closed = createRenderer();
  await closed.close();
  const busy = await serve(createTemplates({ db: service.db, renderer: closed, now: Date.now }));
  const { status, body, headers } = await busy("PUT", "/v1/templates/busy", {
    channel: "sms",
    name: "n",
    content: { body: "b" },
  });
  assert.deepEqual([status, body.code, headers.get("retry-after")], [503, "OVERLOADED", "1"]);
  assert.equal((await ask("GET", "/v1/templates/busy")).status, 404);
});
