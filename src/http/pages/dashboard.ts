// /dashboard: what people look at. A page without any data in it, and files that are named after what is in them, so that a
// browser keeps them for good. What is shown it asks the API for, as anybody could.
//
// What a mail looks like is shown in a frame of another, nameless origin. Its page takes the HTML from the dashboard as a message, so that
// nothing of a mail is ever served here; its policy lets nothing run but its own script, and nothing be fetched, but for images once
// somebody has asked for them.

import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { Type } from "typebox";
import { oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Answer, type Ask, type Route, route } from "#http/core/route.ts";
import { browserScript, type Entry } from "./bundle.ts";

const HTML = "text/html; charset=utf-8";
const FILES: { entry: Entry; ending: string; mediaType: string }[] = [
  { entry: "dashboard", ending: "js", mediaType: "text/javascript; charset=utf-8" },
  { entry: "dashboardStyle", ending: "css", mediaType: "text/css; charset=utf-8" },
];
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

type File = { name: string; mediaType: string; body: string; gzipped: Buffer };

export function dashboardRoutes(): Route[] {
  let making: Promise<File[]> | undefined;
  const files = () => {
    making ??= Promise.all(FILES.map(make));
    return making;
  };
  return [page(files), asset(files), frame()];
}

async function make({ entry, ending, mediaType }: (typeof FILES)[number]): Promise<File> {
  const body = await browserScript(entry);
  return { name: `${digestOf(body).slice(0, 16)}.${ending}`, mediaType, body, gzipped: gzipSync(body, { level: 9 }) };
}

const page = (files: () => Promise<File[]>): Route =>
  route({
    method: "GET",
    path: "/dashboard",
    summary: "The dashboard, for people",
    tag: "Documents",
    answers: { 200: { description: "The page", mediaType: HTML } },
    async handle() {
      const [script, style] = await files();
      return {
        status: 200,
        body: pageOf(script?.name ?? "", style?.name ?? ""),
        headers: { "content-type": HTML, "content-security-policy": POLICY },
      };
    },
  });

const asset = (files: () => Promise<File[]>): Route =>
  route({
    method: "GET",
    path: "/dashboard/:file",
    summary: "What the dashboard is made of",
    tag: "Documents",
    params: strict({ file: Type.String({ minLength: 1, maxLength: 64 }) }),
    answers: {
      200: { description: "The file", mediaType: "text/javascript" },
      404: { description: "Of another version" },
    },
    async handle({ params, header }): Promise<Answer> {
      const file = (await files()).find(({ name }) => name === params.file);
      if (!file) throw new Problem("NOT_FOUND", "the dashboard is not made of that: open it again");
      const headers = {
        "content-type": file.mediaType,
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      };
      return takesGzip(header)
        ? { status: 200, body: file.gzipped, headers: { ...headers, "content-encoding": "gzip" } }
        : { status: 200, body: file.body, headers };
    },
  });

const takesGzip = (header: Ask<never, never, never>["header"]): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\b)/.test(header("accept-encoding") ?? "");

function frame(): Route {
  let making: Promise<{ body: string; hash: string }> | undefined;
  const make = async () => {
    const script = (await browserScript("mailFrame")).trim();
    const hash = createHash("sha256").update(script).digest("base64");
    return { body: `<!doctype html><meta charset="utf-8"><title>Mail</title><script>${script}</script>`, hash };
  };
  return route({
    method: "GET",
    path: "/dashboard/mail/:images",
    summary: "The frame in which the dashboard shows what a mail looks like",
    tag: "Documents",
    params: strict({ images: oneOf(["with-images", "without-images"]) }),
    answers: { 200: { description: "The page", mediaType: HTML } },
    async handle({ params }) {
      making ??= make();
      const { body, hash } = await making;
      const images = params.images === "with-images" ? "data: https: http:" : "data:";
      return {
        status: 200,
        body,
        headers: {
          "content-type": HTML,
          "content-security-policy":
            `sandbox allow-scripts; default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; ` +
            `img-src ${images}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`,
          "x-frame-options": "SAMEORIGIN",
        },
      };
    },
  });
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url");

const pageOf = (script: string, style: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Carillon</title>
<link rel="icon" href="data:image/svg+xml,${ICON}">
<link rel="stylesheet" href="/dashboard/${style}"><script type="module" src="/dashboard/${script}"></script></head>
<body><div id="app"><noscript>The dashboard is a page of JavaScript. The same can be had from the <a href="/docs">API</a>.</noscript></div></body></html>
`;

const ICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#3b5bdb" d="M8 1a1 1 0 0 1 1 1 5 5 0 0 1 4 5v3l1 2H2l1-2V7a5 5 0 0 1 4-5 1 1 0 0 1 1-1zM6 13h4a2 2 0 0 1-4 0z"/></svg>',
);
