// The API as one page of plain HTML: no script, nothing from elsewhere.

import type { TSchema } from "typebox";
import { NEEDS } from "#domain/notification.ts";
import { PROBLEMS } from "#domain/problems.ts";
import type { Route } from "#http/core/route.ts";

type Shape = {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Shape[];
  items?: Shape;
  properties?: { [name: string]: Shape };
  required?: string[];
  default?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  "x-expects"?: string;
};

export function docsPage(routes: readonly Route[], version: string): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const sections = tags.map((tag) => {
    const ours = routes.filter((route) => route.tag === tag);
    return `<section><h2>${escaped(tag)}</h2>${ours.map(article).join("")}</section>`;
  });
  const links = routes.map(
    (route) => `<li><a href="#${anchor(route)}"><b>${route.method}</b> ${escaped(route.path)}</a></li>`,
  );
  const problems = Object.entries(PROBLEMS).map(
    ([name, { status, title }]) =>
      `<tr id="${name}"><td>${code(name)}</td><td>${status}</td><td>${escaped(title)}</td></tr>`,
  );
  const needs = Object.entries(NEEDS).map(([channel, { recipient, content }]) => {
    const cell = (lists: string[][]) => lists.map((names) => names.map(code).join(" or ")).join(", and ") || "nothing";
    return `<tr><td>${code(channel)}</td><td>${cell(recipient)}</td><td>${cell(content)}</td></tr>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carillon ${escaped(version)} API</title><link rel="stylesheet" href="/docs.css"></head>
<body><nav><h1>Carillon</h1><p>${escaped(version)} · <a href="/openapi.json">openapi.json</a></p>
<ul>${links.join("")}<li><a href="#channels">Channels</a></li><li><a href="#problems">Problems</a></li></ul></nav>
<main><p>Send the header <code>Authorization: Bearer &lt;key&gt;</code>. Bodies are JSON, times are RFC 3339 in UTC, ids are
UUIDs. A notification has at most 256 KiB. Unknown fields are refused by name.</p>
${sections.join("\n")}
<section id="channels"><h2>Channels</h2><p>What each needs of <code>recipient</code> and <code>content</code>.</p>
<table><thead><tr><th>channel</th><th>recipient</th><th>content</th></tr></thead><tbody>${needs.join("")}</tbody></table></section>
<section id="problems"><h2>Problems</h2><p>Errors are <code>application/problem+json</code> (RFC 9457). <code>code</code> is stable.
<code>errors</code> lists every fault of an invalid request as a JSON Pointer and a message.</p>
<table><thead><tr><th>code</th><th>status</th><th>meaning</th></tr></thead><tbody>${problems.join("")}</tbody></table></section>
</main></body></html>
`;
}

function article(route: Route): string {
  const scope = route.scope ? `<span class="scope">scope ${route.scope}</span>` : '<span class="scope">open</span>';
  const answers = Object.entries(route.answers).map(([status, { description, schema }]) => {
    const fields = schema ? `<details><summary>fields</summary>${table(schema)}</details>` : "";
    return `<li><code>${status}</code> ${prose(description)}${fields}</li>`;
  });
  return `<article id="${anchor(route)}"><h3><b class="${route.method}">${route.method}</b> <code>${escaped(route.path)}</code>${scope}</h3>
<p>${prose(route.summary)}.${route.detail ? ` ${prose(route.detail)}` : ""}</p>
${part("Path", route.params)}${part("Query", route.query)}${part("Headers", route.headers)}${part("Body", route.body)}
<h4>Answers</h4><ul>${answers.join("")}</ul></article>`;
}

const part = (title: string, schema: TSchema | undefined) => (schema ? `<h4>${title}</h4>${table(schema)}` : "");

function table(schema: TSchema): string {
  const rows = fieldsOf(schema as Shape, "");
  if (rows.length === 0) return `<p>${typeOf(schema as Shape)}</p>`;
  return `<table><tbody>${rows.join("")}</tbody></table>`;
}

function fieldsOf(shape: Shape, prefix: string): string[] {
  return Object.entries(shape.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const need = shape.required?.includes(name) ? '<span class="required">required</span>' : "";
    const row = `<tr><td><code>${escaped(path)}</code> ${need}</td><td>${typeOf(field)}</td></tr>`;
    // Of a list in which several kinds of things may stand, each is shown with its type.
    const items = field.items?.anyOf ?? [field.items ?? {}];
    const inner = items.flatMap((item) => fieldsOf(item, `${path}[${item.properties?.type?.const ?? ""}].`));
    return [row, ...inner, ...fieldsOf(field, `${path}.`)];
  });
}

function typeOf(shape: Shape): string {
  const limits = [
    shape["x-expects"],
    shape.minimum !== undefined && `at least ${shape.minimum}`,
    shape.maximum !== undefined && `at most ${shape.maximum}`,
    shape.maxLength !== undefined && `at most ${shape.maxLength} characters`,
    shape.maxItems !== undefined && `${shape.minItems ?? 0} to ${shape.maxItems} of them`,
    shape.default !== undefined && `default ${shape.default}`,
  ].filter((limit) => typeof limit === "string");
  const words = shape.const === undefined ? shape.enum : [shape.const];
  const type = words
    ? words.map((word) => code(String(word))).join(" | ")
    : shape.anyOf
      ? shape.anyOf.map(typeOf).join(" or ")
      : shape.items
        ? `list of ${shape.items.type ?? "values"}`
        : (shape.type ?? "any JSON");
  return type + (limits.length > 0 ? `, ${escaped(limits.join(", "))}` : "");
}

const anchor = ({ method, path }: Route): string => `${method.toLowerCase()}${path.replace(/\W+/g, "-")}`;
const code = (text: string): string => `<code>${escaped(text)}</code>`;
const prose = (text: string): string => escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>");
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

export const STYLE = `:root { color-scheme: light dark; --line: #8884; --soft: #8881; --strong: #2563eb; }
* { box-sizing: border-box; }
body { margin: 0; display: flex; font: 15px/1.5 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; width: 20rem; flex: none; padding: 1rem; border-right: 1px solid var(--line); }
nav ul { list-style: none; padding: 0; font-size: 13px; } nav li { margin: .25rem 0; overflow-wrap: anywhere; }
nav b { display: inline-block; width: 3.6rem; font-size: 11px; }
main { padding: 1rem 2rem 6rem; max-width: 62rem; min-width: 0; }
a { color: inherit; text-decoration: none; } a:hover { color: var(--strong); text-decoration: underline; }
article { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem 1rem; margin: 1rem 0; }
article:target, tr:target { outline: 2px solid var(--strong); }
h3 { font-size: 1.05rem; display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; } h4 { margin: 1rem 0 .3rem; }
h3 b { color: #fff; background: #475569; border-radius: 4px; padding: .1rem .5rem; font-size: 12px; }
.GET { background: #2563eb; } .POST { background: #15803d; } .DELETE { background: #b91c1c; }
.scope { margin-left: auto; font-weight: normal; font-size: 12px; opacity: .7; }
.required { color: #b91c1c; font-size: 11px; }
code { font: 13px ui-monospace, monospace; background: var(--soft); border-radius: 3px; padding: 0 .2rem; }
p, li, td, h3 code { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px; } td, th { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; font-size: 13px; opacity: .7; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; width: auto; height: auto; border: 0; } main { padding: 1rem; } }
`;
