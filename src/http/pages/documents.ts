// /openapi.json and /docs: what the routes say of themselves, for machines and for people.

import { openapi } from "#http/core/openapi.ts";
import { type Route, route } from "#http/core/route.ts";
import { browserScript } from "./bundle.ts";
import { docsPage } from "./docs-page.ts";
import { STYLE } from "./docs-style.ts";

export function documentRoutes(routes: readonly Route[], version: string): Route[] {
  // Made when somebody asks: most processes are never asked.
  const document = once(() => JSON.stringify(openapi(routes, version), null, 1));
  const page = once(() => docsPage(routes, version, JSON.parse(document())));
  const script = once(() => browserScript("docs"));
  const file = (path: string, summary: string, mediaType: string, body: () => string | Promise<string>): Route =>
    route({
      method: "GET",
      path,
      summary,
      tag: "Documents",
      answers: { 200: { description: summary, mediaType } },
      handle: async () => ({ status: 200, body: await body(), headers: { "content-type": mediaType } }),
    });
  return [
    file("/openapi.json", "The OpenAPI document", "application/json; charset=utf-8", document),
    file("/docs", "The API, to read", "text/html; charset=utf-8", page),
    file("/docs.css", "Its style", "text/css; charset=utf-8", () => STYLE),
    file("/docs.js", "Its script", "text/javascript; charset=utf-8", script),
    route({
      method: "GET",
      path: "/",
      summary: "Leads to the documentation",
      tag: "Documents",
      answers: { 302: { description: "To /docs" } },
      handle: () => ({ status: 302, headers: { location: "/docs" } }),
    }),
  ];
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
