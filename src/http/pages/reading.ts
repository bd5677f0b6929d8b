// /llms.txt and /docs/*.md: the pages of docs/ that came with the package, as text, and a map of them, for those who read by machine.

import { readdir, readFile } from "node:fs/promises";
import { Type } from "typebox";
import { strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";

const FOLDER = new URL("../../../docs/", import.meta.url);
const MARKDOWN = "text/markdown; charset=utf-8";

export function readingRoutes({ hasMcp }: { hasMcp: boolean }): Route[] {
  let reading: Promise<Map<string, string>> | undefined;
  const pages = () => {
    reading ??= readPages();
    return reading;
  };
  return [
    route({
      method: "GET",
      path: "/llms.txt",
      summary: "A map of the documentation and the API, for machines that read",
      tag: "Documents",
      answers: { 200: { description: "The map", mediaType: MARKDOWN } },
      handle: async () => ({ status: 200, body: mapOf(await pages(), hasMcp), headers: { "content-type": MARKDOWN } }),
    }),
    route({
      method: "GET",
      path: "/docs/:page",
      summary: "A page of the documentation, as Markdown",
      tag: "Documents",
      params: strict({
        page: Type.String({ pattern: "^[a-z0-9-]{1,64}[.]md$", "x-expects": "a page like events.md" }),
      }),
      answers: { 200: { description: "The page", mediaType: MARKDOWN } },
      async handle({ params: { page } }) {
        const body = (await pages()).get(page);
        if (body === undefined) throw new Problem("NOT_FOUND", `there is no page ${page}`);
        return { status: 200, body, headers: { "content-type": MARKDOWN } };
      },
    }),
  ];
}

/** They are the release's: read once. A package that was stripped of them has none. */
async function readPages(): Promise<Map<string, string>> {
  const names = await readdir(FOLDER).catch(() => []);
  const texts = names
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map(async (name) => [name, await readFile(new URL(name, FOLDER), "utf8")] as const);
  return new Map(await Promise.all(texts));
}

function mapOf(pages: Map<string, string>, hasMcp: boolean): string {
  const lines = [...pages].map(([name, text]) => `- [${titleOf(text)}](/docs/${name})${firstOf(text)}`);
  return `# Carillon

> A self-hosted notification service: e-mail, push, SMS, Slack, webhooks and an inbox, over one API. What it has accepted is kept, sent in order of priority, and recorded.

Requests carry \`Authorization: Bearer <key>\`. Bodies are JSON, times RFC 3339 in UTC, errors \`application/problem+json\` with a stable \`code\`.

## API

- [OpenAPI 3.1](/openapi.json): every operation, with descriptions and examples
- [The API, to read](/docs): with examples in curl, TypeScript and Python
- \`npm install carillon\`, then \`import { createClient } from "carillon/client"\`: the typed client
${hasMcp ? "- `POST /mcp`: tools by the Model Context Protocol; begin with `why_not_delivered`\n" : ""}
## Documentation

${lines.join("\n")}
`;
}

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? "";

/** The first sentence below the title. */
function firstOf(text: string): string {
  const [, words = ""] = /^# .+\n+([A-Z][^\n|#]*)/.exec(text) ?? [];
  const sentence = /^.*?[.:](?= |$)/.exec(words)?.[0] ?? "";
  return sentence === "" ? "" : `: ${sentence.replace(/:$/, ".")}`;
}
