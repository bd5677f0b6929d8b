// /openapi.json and /docs: what the routes say of themselves, for machines and for people.

import { openapi } from "#http/core/openapi.ts";
import { type Route, route } from "#http/core/route.ts";
import { docsPage, STYLE } from "./docs-page.ts";

export function documentRoutes(routes: readonly Route[], version: string): Route[] {
  const document = openapi(routes, version);
  const page = docsPage(routes, version);
  const file = (path: string, summary: string, mediaType: string, body: string): Route =>
    route({
      method: "GET",
      path,
      summary,
      tag: "Documents",
      answers: { 200: { description: summary, mediaType } },
      handle: () => ({ status: 200, body, headers: { "content-type": mediaType } }),
    });
  return [
    file("/openapi.json", "The OpenAPI document", "application/json; charset=utf-8", JSON.stringify(document, null, 1)),
    file("/docs", "The API, to read", "text/html; charset=utf-8", page),
    file("/docs.css", "Its style", "text/css; charset=utf-8", STYLE),
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
