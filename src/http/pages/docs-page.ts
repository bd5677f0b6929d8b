// The API as one page of HTML, drawn from the OpenAPI document. It can be read without its script, which searches and tries things out
// (web/docs); nothing comes from elsewhere.

import { NEEDS } from "#domain/notification.ts";
import { PROBLEMS } from "#domain/problems.ts";
import type { Route } from "#http/core/route.ts";
import type { Shape as Described } from "#http/describe/describe.ts";
import { examplesOf, type Shown } from "./examples.ts";

type Shape = Omit<Described, "properties" | "items" | "anyOf"> & {
  anyOf?: Shape[];
  items?: Shape;
  properties?: { [name: string]: Shape };
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  "x-expects"?: string;
};
type Shapes = { [name: string]: Shape };
type Parameter = { name: string; in: string; required: boolean; description?: string; schema: Shape };
type Operation = Omit<Shown, "parameters" | "requestBody"> & {
  description: string;
  parameters?: Parameter[];
  requestBody?: { content: { [type: string]: { schema: Shape; example?: unknown } } };
  responses: { [status: string]: { description: string; content?: { [type: string]: { schema?: Shape } } } };
};
type Document = { paths: { [path: string]: { [method: string]: Operation } }; components: { schemas: Shapes } };

export function docsPage(routes: readonly Route[], version: string, document: Document): string {
  const { schemas } = document.components;
  const operationOf = ({ method, path }: Route) =>
    document.paths[path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
  const article = (route: Route) => {
    const operation = operationOf(route);
    return operation ? articleOf(route, operation, schemas) : "";
  };
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
<title>Carillon ${escaped(version)} API</title><link rel="stylesheet" href="/docs.css"><script type="module" src="/docs.js"></script></head>
<body><nav><h1>Carillon</h1><p>${escaped(version)} · <a href="/openapi.json">openapi.json</a></p>
<div class="tools" hidden><label>Search <input id="search" type="search" placeholder="Press /" autocomplete="off"></label><output id="found" aria-live="polite"></output>
<label>API key, to try things out: kept in this page's memory only <input id="key" type="password" autocomplete="off" placeholder="ck_…"></label></div>
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

function articleOf(route: Route, operation: Operation, shapes: Shapes): string {
  const { method, path, summary, detail } = route;
  const scope = route.scope ? `<span class="scope">scope ${route.scope}</span>` : '<span class="scope">open</span>';
  const { parameters = [], requestBody, responses } = operation;
  const answers = Object.entries(responses)
    .filter(([status]) => route.answers[Number(status)])
    .map(([status, { description, content = {} }]) => {
      const schema = Object.values(content)[0]?.schema;
      const fields = schema ? `<details><summary>fields</summary>${table(schema, shapes)}</details>` : "";
      return `<li><code>${status}</code> ${prose(description)}${fields}</li>`;
    });
  const body = requestBody?.content["application/json"]?.schema;
  const words = [method, path, summary, detail, route.tag, ...parameters.map(({ name }) => name)].join(" ");
  const of = (place: string) => parameters.filter((one) => one.in === place);
  return `<article id="${anchor(route)}" data-method="${method}" data-path="${escaped(path)}" data-words="${escaped(words)}">
<h3><b class="${method}">${method}</b> <code>${escaped(path)}</code>${scope}</h3>
<p>${prose(summary)}.${detail ? ` ${prose(detail)}` : ""}</p>
${given("Path", of("path"))}${given("Query", of("query"))}${given("Headers", of("header"))}${body ? `<h4>Body</h4>${table(body, shapes)}` : ""}
<h4>Answers</h4><ul>${answers.join("")}</ul>
<h4>Examples</h4>${examples(route, operation)}
<details class="try tools" hidden><summary>Try it</summary></details></article>`;
}

function examples(route: Route, operation: Operation): string {
  const { curl, typescript, python } = examplesOf(route.method, route.path, operation as Shown);
  const name = `example-${anchor(route)}`;
  const shown = [
    ["curl", curl],
    ["TypeScript", typescript],
    ["Python", python],
  ].filter(([, text]) => text !== "");
  return shown
    .map(
      ([language = "", text = ""]) =>
        `<details name="${name}"><summary>${language}</summary><pre class="example" tabindex="0">${escaped(text)}</pre></details>`,
    )
    .join("");
}

function given(title: string, parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return "";
  const properties = parameters.map(({ name, schema, description = "" }) => [name, { ...schema, description }]);
  const required = parameters.filter((one) => one.required).map(({ name }) => name);
  return `<h4>${title}</h4>${table({ properties: Object.fromEntries(properties), required }, {})}`;
}

function table(schema: Shape, shapes: Shapes): string {
  const rows = fieldsOf(resolved(schema, shapes), "", shapes, 0);
  if (rows.length === 0) return `<p>${typeOf(resolved(schema, shapes))}</p>`;
  return `<table><tbody>${rows.join("")}</tbody></table>`;
}

const resolved = (shape: Shape, shapes: Shapes): Shape =>
  shape.$ref === undefined ? shape : { ...shapes[shape.$ref.split("/").at(-1) ?? ""], ...shape };

/** A schema within a schema within a schema is shown where it stands first. */
const DEEPEST = 6;

function fieldsOf(shape: Shape, prefix: string, shapes: Shapes, depth: number): string[] {
  if (depth > DEEPEST) return [];
  return Object.entries(shape.properties ?? {}).flatMap(([name, one]) => {
    const field = resolved(one, shapes);
    const path = prefix + name;
    const need = shape.required?.includes(name) ? '<span class="required">required</span>' : "";
    const words = field.description ? `${prose(field.description)}. ` : "";
    const row = `<tr><td><code>${escaped(path)}</code> ${need}</td><td>${words}<small>${typeOf(field)}</small></td></tr>`;
    // Of a list in which several kinds of things may stand, each is shown with its type.
    const item = field.items && resolved(field.items, shapes);
    const items = (item?.anyOf ?? [item ?? {}]).map((kind) => resolved(kind, shapes));
    const inner = items.flatMap((kind) =>
      fieldsOf(kind, `${path}[${kind.properties?.type?.const ?? ""}].`, shapes, depth + 1),
    );
    return [row, ...inner, ...fieldsOf(field, `${path}.`, shapes, depth + 1)];
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
