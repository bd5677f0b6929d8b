// Templates: what they may do, and what becomes of those that try more.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { rankOf } from "#domain/priority.ts";
import { createRenderer, type RendererOptions } from "#templates/renderer.ts";
import {
  faultsOfContent,
  pickVariant,
  type Rendered,
  type Source,
  type TemplateFields,
  type Variables,
} from "#templates/template.ts";

const source = (fields: TemplateFields, more: Partial<Source> = {}): Source => ({
  tenant: 1,
  fields,
  partials: {},
  locale: "default",
  strict: false,
  ...more,
});

const renderer = createRenderer({ threads: 1 });
after(() => renderer.close());
const render = (fields: TemplateFields, variables: Variables = {}, more: Partial<Source> = {}) =>
  renderer.render(source(fields, more), variables);
const fieldsOf = (rendered: Rendered): TemplateFields => {
  assert.ok(rendered.ok, JSON.stringify(rendered));
  return rendered.fields;
};
const errorOf = (rendered: Rendered) => {
  assert.ok(!rendered.ok, JSON.stringify(rendered));
  return rendered.error;
};
const text = async (body: string, variables: Variables = {}, more: Partial<Source> = {}) =>
  fieldsOf(await render({ body }, variables, more)).body;
const error = async (body: string, variables: Variables = {}, more: Partial<Source> = {}) =>
  errorOf(await render({ body }, variables, more));

/** Liquid looks at the clock between tags, never within a filter. */
const ENDLESS = `{% assign a = (1..100000) %}{% assign b = a | where_exp: "i", "${"i > 2 and ".repeat(500)}i > 2" %}`;
/** An object for each number: cheap by Liquid's count, not by V8's. */
const HUNGRY = '{% assign a = (1..900000) %}{% assign b = a | group_by_exp: "i", "i" %}{{ b | size }}';
const mjmlOf = (inner: string) => `<mjml>
<mj-body>
<mj-section><mj-column>
${inner}
</mj-column></mj-section>
</mj-body>
</mjml>`;

async function using<Value>(options: RendererOptions, act: (own: typeof renderer) => Promise<Value>): Promise<Value> {
  const own = createRenderer(options);
  try {
    return await act(own);
  } finally {
    await own.close();
  }
}

test("a filter that cuts an emoji in half leaves a mark, and the message goes out", async () => {
  assert.equal(await text("{{ name | split: '' | first }}", { name: "🔔 ring" }), "\ufffd");
});

test("texts are filled, at any depth of data, and what is not text stays as it is", async () => {
  const given = {
    title: "Hi {{ name }}",
    badge: 3,
    data: { link: "/u/{{ id }}", deep: [{ n: 1, s: "{{ name }}" }], x: null },
  };
  assert.deepEqual(fieldsOf(await render(given, { name: "Ada", id: 7 })), {
    title: "Hi Ada",
    badge: 3,
    data: { link: "/u/7", deep: [{ n: 1, s: "Ada" }], x: null },
  });
});

test("values are escaped in HTML and nowhere else", async () => {
  const name = `<script>"&'`;
  const fields = {
    subject: "{{ name }}",
    textBody: "{{ name }}",
    htmlBody: '<a title="{{ name }}">{{ name | raw }}</a>',
  };
  assert.deepEqual(fieldsOf(await render(fields, { name })), {
    subject: name,
    textBody: name,
    htmlBody: `<a title="&lt;script&gt;&#34;&amp;&#39;">${name}</a>`,
  });
});

test("partials and layouts are found by name, and escape as the text does that includes them", async () => {
  const partials = {
    hello: "Hello {{ who }}, {% render 'sign' %}",
    sign: "yours & <truly>",
    base: "[{% block main %}nothing{% endblock %}]",
  };
  assert.equal(
    await text("{% render 'hello', who: name %}!", { name: "<A>" }, { partials }),
    "Hello <A>, yours & <truly>!",
  );
  const laid = "{% layout 'base' %}{% block main %}{{ name }}{% endblock %}";
  assert.deepEqual(fieldsOf(await render({ textBody: laid, htmlBody: laid }, { name: "<A>" }, { partials })), {
    textBody: "[<A>]",
    htmlBody: "[&lt;A&gt;]",
  });
});

test("files, and whatever else is no partial, cannot be included", async () => {
  for (const name of ["/etc/passwd", "../package.json", "package.json", "constructor", "__proto__", "toString"]) {
    for (const tag of ["render", "include", "layout"]) {
      const { message } = await error(`{% ${tag} "${name}" %}`);
      assert.equal(message, `there is no partial ${name}`);
    }
    const found = errorOf(await render({ mjml: mjmlOf(`<mj-include path="${name}" />`) }));
    assert.deepEqual([found.message, found.line], [`there is no partial ${name}`, 4]);
  }
});

test("prototypes and constructors are out of reach", async () => {
  for (const path of [
    "constructor",
    "a.constructor",
    "a.__proto__",
    "a.toString",
    "s.constructor.name",
    "l.constructor",
  ]) {
    assert.equal(await text(`[{{ ${path} }}]`, { a: {}, s: "x", l: [1] }), "[]", path);
  }
  assert.equal(
    await text('[{{ a[k] }}{{ a["constructor"] }}{{ l["__proto__"] }}]', { a: {}, l: [], k: "__proto__" }),
    "[]",
  );
  assert.equal(await text('{{ l | map: "constructor" | join: "," }}', { l: [{}, { constructor: "own" }] }), ",own");
});

test("an error names the field and the line, also within a partial", async () => {
  assert.deepEqual(await error("one\ntwo {{ name | shout }}"), {
    message: "undefined filter: shout",
    line: 2,
    field: "body",
  });
  assert.deepEqual(await error("one\n\n{% if a %}"), { message: "tag {% if a %} not closed", line: 3, field: "body" });
  assert.deepEqual(errorOf(await render({ data: { a: ["", "{{ x"] } })), {
    message: 'output "{{ x" not closed',
    line: 1,
    field: "data/a/1",
  });
  assert.deepEqual(await error("\n{% render 'p' %}", {}, { partials: { p: "1\n2\n{{ a | nope }}" } }), {
    message: "in the partial p: undefined filter: nope",
    line: 3,
    field: "body",
  });
});

test("an unknown variable is empty, or an error when the template is strict", async () => {
  assert.equal(await text("[{{ nobody.name }}]"), "[]");
  assert.deepEqual(await error("\n[{{ nobody.name }}]", {}, { strict: true }), {
    message: "undefined variable: nobody",
    line: 2,
    field: "body",
  });
  assert.equal(await text('{{ nobody | default: "you" }}', { nobody: null }, { strict: true }), "you");
});

test("a check finds the errors of every field, missing partials included, and renders nothing", async () => {
  const errors = await renderer.check(
    source({ subject: "{{ a | b }}", textBody: "fine {{ x }}", htmlBody: "{% for %}" }, { strict: true }),
  );
  assert.deepEqual(
    errors.map(({ field }) => field),
    ["subject", "htmlBody"],
  );
  assert.deepEqual(await renderer.check(source({ body: "\n{% comment %}{% render 'old' %}{% endcomment %}" })), []);
  assert.deepEqual(await renderer.check(source({ body: "\n{% if a %}{% render 'gone' %}{% endif %}" })), [
    { message: "there is no partial gone", line: 2, field: "body" },
  ]);
  assert.deepEqual(await renderer.check(source({ body: ENDLESS }, { strict: true })), []);
});

test("MJML becomes HTML, and the Liquid in it is filled for each message", async () => {
  const mjml = mjmlOf(`<mj-include path="greeting" />
<mj-text>{% if a < b %}less{% else %}more{% endif %}</mj-text>
<mj-raw>{% for item in items %}</mj-raw><mj-text color="{{ colour }}">{{ item }}</mj-text><mj-raw>{% endfor %}</mj-raw>
<mj-button href="https://example.com/?q={{ q | url_encode }}">go</mj-button>`);
  const partials = { greeting: "<mj-text>\nDear {{ name }}</mj-text>" };
  const variables = { name: "<Ada>", a: 1, b: 2, items: ["one", "two"], colour: "red", q: "a b" };
  const { htmlBody = "", ...rest } = fieldsOf(await render({ subject: "s", mjml }, variables, { partials }));
  assert.deepEqual(rest, { subject: "s" });
  assert.match(htmlBody, /^<!doctype html>/);
  for (const part of [
    /Dear &lt;Ada&gt;</,
    />less</,
    /color:red;"\s*>one</,
    />two</,
    /href="https:\/\/example.com\/\?q=a\+b"/,
  ]) {
    assert.match(htmlBody, part);
  }
  assert.doesNotMatch(htmlBody, /\{[{%]|<mj-|liquid|fonts\.googleapis/);
});

test("a mail made of MJML says its language if it is known, and nothing else", async () => {
  const lang = async (mjml: string, locale: string) =>
    /<html([^>]*)>/
      .exec(fieldsOf(await render({ mjml }, {}, { locale })).htmlBody ?? "")?.[1]
      ?.match(/lang="[^"]*"/)?.[0];
  const mjml = mjmlOf("<mj-text>Salut</mj-text>");
  assert.equal(await lang(mjml, "default"), undefined);
  assert.equal(await lang(mjml, "fr-CA"), 'lang="fr-CA"');
  assert.equal(await lang(mjml.replace("<mjml>", '<mjml lang="de">'), "fr-CA"), 'lang="de"');
});

test("errors in MJML, and Liquid that MJML would drop, are told with their lines", async () => {
  const found = async (mjml: string, more: Partial<Source> = {}) => {
    const { message, line } = errorOf(await render({ mjml }, {}, more));
    return [message, line];
  };
  assert.deepEqual(await found(mjmlOf("\n<mj-wrong />")), [
    "<mj-wrong>: Element mj-wrong doesn't exist or is not registered",
    5,
  ]);
  assert.deepEqual(await found(mjmlOf("<mj-text>{{ a | nope }}</mj-text>")), ["undefined filter: nope", 4]);
  const strict = mjmlOf("{% comment %}\n{% endcomment %}<mj-text>\n{{ nope.a }}</mj-text>");
  assert.match(String((await found(strict))[0]), /^MJML drops \{% comment %} here/);
  const three = mjmlOf("<mj-include path='p' />\n<mj-text>{{ 'a'\n | upcase }}\n{{ nope }}</mj-text>");
  const partials = { p: "<mj-text>1\n2\n3</mj-text>" };
  assert.deepEqual(await found(three, { strict: true, partials }), ["undefined variable: nope", 7]);
  assert.deepEqual(await found(mjmlOf("{% for a in b %}<mj-text>x</mj-text>{% endfor %}")).then(([, line]) => line), 4);
  assert.equal((await found("no MJML"))[1], undefined);
  const loop = { a: "<mj-include path='b' />", b: "<mj-include path='a' />" };
  assert.match(String((await found(mjmlOf("<mj-include path='a' />"), { partials: loop }))[0]), /more than 8 deep/);
});

test("a recipient reads the nearest language, whole, and dates in it", async () => {
  const content = { locales: { default: { body: "d" }, fr: { body: "f", title: "t" }, "fr-CA": { body: "c" } } };
  const cases = [
    ["fr-CA", "fr-CA"],
    ["fr-ca", "fr-CA"],
    ["fr-CA-x-old", "fr-CA"],
    ["fr-BE", "fr"],
    ["FR", "fr"],
    ["frr", "default"],
    ["de-AT", "default"],
    ["", "default"],
    [undefined, "default"],
  ] as const;
  for (const [wanted, found] of cases) assert.equal(pickVariant(content, wanted).locale, found, wanted);
  assert.deepEqual(pickVariant(content, "fr-CA").fields, { body: "c" });
  assert.deepEqual(pickVariant({ body: "only" }, "fr"), { locale: "default", fields: { body: "only" } });
  const date = "{{ '2027-02-01T23:30:00Z' | date: '%A %-d %B %H:%M' }}";
  assert.equal(await text(date, {}, { locale: "fr" }), "lundi 1 février 23:30");
  assert.equal(await text(date), "Monday 1 February 23:30");
  assert.equal(await text("{{ '2027-02-01T23:30:00Z' | date: '%H:%M', 'Asia/Tokyo' }}"), "08:30");
});

test("content must fit its channel, and locales need a default", () => {
  const paths = (...given: Parameters<typeof faultsOfContent>) => faultsOfContent(...given).map(({ path }) => path);
  assert.deepEqual(paths("sms", { body: "b" }), []);
  assert.deepEqual(paths("sms", { body: "b", subject: "s" }), ["/content/subject"]);
  assert.deepEqual(paths("sms", {}), ["/content"]);
  assert.deepEqual(paths("email", { mjml: "m", htmlBody: "h" }), ["/content/mjml"]);
  assert.deepEqual(paths("sms", { body: "b", locales: { fr: { body: "b" }, "no_t!": { body: "b" } } }), [
    "/content/body",
    "/content/locales/default",
    "/content/locales/no_t!",
  ]);
});

test("a loop without end is stopped with its line, and the thread lives on", () =>
  // With a fifth of a second from Liquid's limit to the kill, for a machine that has other things to do.
  using({ threads: 1, deadlineMs: 1000 }, async (own) => {
    const work = "{% assign x = i | plus: j | times: 2 %}".repeat(20);
    const body = `one\n{% for i in (1..1000) %}{% for j in (1..1000) %}${work}{% endfor %}{% endfor %}`;
    const { message, line, why } = errorOf(await own.render(source({ body }), {}));
    assert.deepEqual([message, line, why], ["takes too long", 2, "slow"]);
    assert.equal(fieldsOf(await own.render(source({ body: "still {{ a }}" }), { a: "here" })).body, "still here");
  }));

test("what Liquid does not stop is killed after 250 ms of the processor, and the next render works", () =>
  using({ threads: 1 }, async (own) => {
    fieldsOf(await own.render(source({ body: "warm" }), {}));
    const before = performance.now();
    const [first, next] = await Promise.all([
      own.render(source({ body: ENDLESS }), {}).then((rendered) => ({ rendered, ms: performance.now() - before })),
      own.render(source({ body: "next {{ a }}" }), { a: 1 }),
    ]);
    assert.deepEqual(errorOf(first.rendered), { message: "takes longer than 250 ms", why: "slow" });
    assert.ok(first.ms >= 245, `${first.ms} ms`);
    assert.equal(fieldsOf(next).body, "next 1");
  }));

test("a partial that includes itself without end fails", async () => {
  assert.ok(!(await render({ body: "{% render 'p' %}" }, {}, { partials: { p: "x{% render 'p' %}" } })).ok);
  assert.equal(await text("on"), "on");
});

test("a thread that dies of its memory fails the render it had in hand and no other", () =>
  using({ threads: 2, memoryMb: 40, deadlineMs: 30_000 }, async (own) => {
    const fine = (n: number) => own.render(source({ body: "{{ n }}" }), { n });
    const before = [fine(0), fine(1)];
    const hungry = own.render(source({ body: HUNGRY }), {});
    const after = Array.from({ length: 50 }, (_, n) => fine(n + 2));
    assert.deepEqual(errorOf(await hungry), { message: "needs more than 40 MiB of memory" });
    const bodies = (await Promise.all([...before, ...after])).map((rendered) => fieldsOf(rendered).body);
    assert.deepEqual(
      bodies,
      Array.from({ length: 52 }, (_, n) => String(n)),
    );
    assert.equal(fieldsOf(await fine(99)).body, "99");
  }));

test("memory and output are limited where it shows: texts that double, long ranges, long output", async () => {
  const doubling =
    "{% capture s %}abc{% endcapture %}{% for i in (1..60) %}\n{% capture s %}{{ s }}{{ s }}{% endcapture %}{% endfor %}";
  assert.deepEqual(await error(doubling), { message: "the text is longer than 262144 bytes", line: 2, field: "body" });
  assert.equal((await error("{% for i in (1..2000000000) %}{% endfor %}")).message, "needs too much memory");
  assert.equal(
    (await error('{% assign s = "ab" %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}')).message,
    "needs too much memory",
  );
  const { message } = await error("{% for i in (1..30000) %}0123456789{% endfor %}");
  assert.equal(message, "the text is longer than 262144 bytes");
  assert.equal((await text("{{ s }}", { s: "x".repeat(262_144) }))?.length, 262_144);
  assert.equal((await error("{{ s }}", { s: "é".repeat(131_073) })).message, "the text is longer than 262144 bytes");
  const half = "{{ s }}";
  const both = await render({ subject: half, textBody: half }, { s: "x".repeat(150_000) });
  assert.deepEqual(errorOf(both), { message: "the text is longer than 262144 bytes", field: "textBody" });
});

test("a thousand renders of one template compile it once", async () => {
  const mjml = (title: string) => mjmlOf(`<mj-text>${title}</mj-text>${"<mj-text>{{ n }}</mj-text>".repeat(20)}`);
  const timed = async (count: number, titleOf: (n: number) => string) => {
    const start = performance.now();
    for (let n = 0; n < count; n++) {
      const { htmlBody = "" } = fieldsOf(await render({ mjml: mjml(titleOf(n)) }, { n: `(${n})` }));
      assert.equal(htmlBody.split(`(${n})`).length, 21);
    }
    return (performance.now() - start) / count;
  };
  await timed(50, (n) => `so that all code is warm ${n}`);
  const newMs = await timed(50, (n) => `each of them is new ${n}`);
  const knownMs = await timed(1000, () => "always the same");
  assert.ok(knownMs < newMs / 3, `${knownMs} ms each, ${newMs} ms when new`);
});

test("more templates than a thread keeps are compiled again when they return", () =>
  using({ threads: 1 }, async (own) => {
    for (const round of [1, 2]) {
      for (let n = 0; n < 600; n++) {
        const rendered = await own.render(source({ body: `${n} {{ round }}` }), { round });
        assert.equal(fieldsOf(rendered).body, `${n} ${round}`);
      }
    }
  }));

test("a process that stood still does not take its own delay for the template's", async () => {
  await text("warm");
  // After an immediate come the timers, and only then the messages.
  await setImmediate();
  const rendering = [1, 2].map((n) => text("quick {{ n }}", { n }));
  const until = performance.now() + 400;
  while (performance.now() < until);
  assert.deepEqual(await Promise.all(rendering), ["quick 1", "quick 2"]);
});

test("variables that cannot be sent to a thread are an error too", async () => {
  const found = await error("{{ f }} of this test alone", { f: () => 1 });
  assert.equal(found.message, "the variables hold something that is not JSON");
  assert.equal(await text("{{ f }} of this test alone", { f: 1 }), "1 of this test alone");
});

test("the queue has an end, and closing answers whoever waits", async () => {
  const own = createRenderer({ threads: 1, maxWaiting: 2 });
  const all = Array.from({ length: 4 }, () => own.render(source({ body: ENDLESS }), {}));
  assert.deepEqual(errorOf((await all.at(-1)) as Rendered), {
    message: "too many templates wait to be rendered",
    why: "busy",
  });
  await own.close();
  for (const rendered of await Promise.all(all)) assert.equal(errorOf(rendered).why, "busy");
  assert.equal(errorOf(await own.render(source({ body: "late" }), {})).why, "busy");
});

test("one tenant's templates hold up nobody else's, however many they are and however long they take", () =>
  using({ threads: 3, maxWaiting: 40 }, async (own) => {
    let ended = 0;
    const hostile = Array.from({ length: 60 }, async (_, n) => {
      const rendered = await own.render(source({ body: `${n}${ENDLESS}` }, { tenant: 666 }), {});
      ended += 1;
      return rendered;
    });
    const theirs = Array.from({ length: 20 }, (_, n) => own.render(source({ body: "{{ n }}" }, { tenant: 2 }), { n }));
    const bodies = (await Promise.all(theirs)).map((rendered) => fieldsOf(rendered).body);
    assert.deepEqual(
      bodies,
      Array.from({ length: 20 }, (_, n) => String(n)),
    );
    assert.ok(ended < 60, `${ended} of the others' were waited for`);
    const whys = (await Promise.all(hostile.slice(-10))).map((rendered) => errorOf(rendered).why);
    assert.deepEqual([...new Set(whys)], ["busy"], "he himself is told that too many of his wait");
  }));

test("an urgent text waits for no more than what is in hand, whoever has the others", () =>
  using({ threads: 1 }, async (own) => {
    let ended = 0;
    const low = Array.from({ length: 40 }, async (_, n) => {
      await own.render(source({ body: "{{ n }}" }, { tenant: 1 + (n % 4) }), { n }, rankOf.low);
      ended += 1;
    });
    await own.render(source({ body: "now" }, { tenant: 1 }), {}, rankOf.urgent);
    assert.ok(ended <= 1, `${ended} of the others' were waited for`);
    await Promise.all(low);
  }));

test("memory that one tenant's templates take does not fail another's render", () =>
  using({ threads: 1, memoryMb: 60, deadlineMs: 30_000 }, async (own) => {
    // Some megabytes each when compiled.
    const heavy = (n: number) =>
      source({ body: `${n}${"{{ a | append: b | upcase }}".repeat(4_000)}` }, { tenant: 666 });
    const need = '{% assign a = (1..40000) %}{% assign b = a | group_by_exp: "i", "i" %}{{ b | size }}';
    for (let n = 0; n < 8; n++) {
      await own.render(heavy(n), {});
      const rendered = await own.render(source({ body: need }, { tenant: 2 }), {});
      assert.equal(fieldsOf(rendered).body, "40000", `after ${n + 1}`);
    }
  }));
