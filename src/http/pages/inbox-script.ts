// /inbox.js: the web component <carillon-inbox>, for pages without a bundler.

import { createHash } from "node:crypto";
import { type Route, route } from "#http/core/route.ts";
import { browserScript } from "./bundle.ts";

const JAVASCRIPT = "text/javascript; charset=utf-8";

export function inboxScriptRoutes(): Route[] {
  let made: Promise<{ body: string; etag: string }> | undefined;
  const make = async () => {
    const body = await browserScript("inbox");
    return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"` };
  };
  return [
    route({
      method: "GET",
      path: "/inbox.js",
      summary: "The web component `<carillon-inbox>`, an ES module",
      tag: "Documents",
      answers: { 200: { description: "The module", mediaType: JAVASCRIPT }, 304: { description: "Unchanged" } },
      async handle({ header }) {
        made ??= make();
        const { body, etag } = await made;
        const headers = {
          etag,
          "cache-control": "public, max-age=300",
          // It holds no secret and is made for pages of other origins.
          "access-control-allow-origin": "*",
          "cross-origin-resource-policy": "cross-origin",
        };
        if (header("if-none-match") === etag) return { status: 304, headers };
        return { status: 200, body, headers: { ...headers, "content-type": JAVASCRIPT } };
      },
    }),
  ];
}
