// Stands in for the inbox routes of a Carillon, so that the component can be tried against outages, restarts and
// refusals at will. What it holds outlives a restart, as a database would.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { browserScript } from "#http/pages/bundle.ts";
import { listening } from "./listening.ts";
import { textOf } from "./scripted.ts";

export type Item = {
  id: string;
  title: string;
  body: string | null;
  link: string | null;
  category: string | null;
  data: null;
  createdAt: string;
  readAt: string | null;
  archivedAt: string | null;
};

export type InboxStandIn = {
  url: string;
  userId: string;
  items: Item[];
  /** Ids that were acknowledged, in order. */
  acked: string[];
  /** Requests as `GET /v1/…`, without the query. */
  asked: string[];
  /** Where each stream that was opened went on from. */
  resumed: (string | undefined)[];
  streams(): { open: number; most: number };
  push(item?: Partial<Item>): Item;
  /** Tokens that are taken; without the first, nobody gets in. */
  tokens: Set<string>;
  /** Every request but a page's is answered so, until undefined. */
  refuse: number | undefined;
  /** The list is there, the stream is not. */
  hasStreams: boolean;
  /** Stop listening and cut every connection. */
  down(): Promise<void>;
  up(): Promise<void>;
  cutStreams(): void;
  /** A numbering that no reader knows: whoever resumes is told to reset. */
  newEpoch(): void;
};

/** What our own pages are served with, and no string may become markup. */
const CSP =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const RETRY_MS = 200;

export async function startInboxStandIn(): Promise<InboxStandIn> {
  const userId = "u_17";
  let epoch = 1;
  let most = 0;
  const streams = new Map<ServerResponse, true>();
  const items: Item[] = [];
  const unread = () => items.filter(({ readAt, archivedAt }) => !readAt && !archivedAt).length;

  const standIn: InboxStandIn = {
    url: "",
    userId,
    items,
    acked: [],
    asked: [],
    resumed: [],
    streams: () => ({ open: streams.size, most }),
    push(item = {}) {
      const n = items.length + 1;
      const made: Item = {
        id: `id-${n}`,
        title: `Number ${n}`,
        body: null,
        link: null,
        category: null,
        data: null,
        createdAt: new Date().toISOString(),
        readAt: null,
        archivedAt: null,
        ...item,
      };
      items.push(made);
      for (const stream of streams.keys()) stream.write(eventOf(n) + unreadEvent());
      return made;
    },
    tokens: new Set(["good"]),
    refuse: undefined,
    hasStreams: true,
    down: () => kept.down(),
    up: () => kept.up(),
    cutStreams() {
      for (const stream of streams.keys()) stream.destroy();
    },
    newEpoch() {
      epoch++;
    },
  };
  const eventOf = (n: number) => `id: ${epoch}:${n}\nevent: notification\ndata: ${JSON.stringify(items[n - 1])}\n\n`;
  const unreadEvent = () => `event: unread\ndata: ${unread()}\n\n`;

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://stand-in");
    const isApi = url.pathname.startsWith("/v1/");
    const token = request.headers.authorization?.replace("Bearer ", "") ?? request.headers.cookie?.split("=")[1];
    const verb = url.pathname.split("/")[4];
    if (isApi) standIn.asked.push(`${request.method} ${url.pathname}`);
    if (!isApi) void file(url, response);
    else if (standIn.refuse !== undefined) json(response, standIn.refuse, {});
    else if (token === undefined || !standIn.tokens.has(token)) json(response, 401, {});
    else if (verb === undefined) list(url.searchParams, response);
    else if (verb === "stream" && !standIn.hasStreams) json(response, 503, {});
    else if (verb === "stream") stream(request, response);
    else void mark(verb, request, response);
  }

  function list(query: URLSearchParams, response: ServerResponse): void {
    const limit = Number(query.get("limit") ?? 50);
    const before = Number(query.get("cursor") ?? Number.POSITIVE_INFINITY);
    const wanted = items
      .map((item, index) => ({ item, n: index + 1 }))
      .filter(({ item, n }) => n < before && !item.archivedAt)
      .filter(({ item }) => !query.has("category") || item.category === query.get("category"))
      .filter(({ item }) => query.get("unread") !== "true" || !item.readAt)
      .reverse();
    const page = wanted.slice(0, limit);
    const nextCursor = wanted.length > limit ? String(page.at(-1)?.n) : null;
    const position = `${epoch}:${items.length}`;
    json(response, 200, { data: page.map(({ item }) => item), unread: unread(), position, nextCursor });
  }

  function stream(request: IncomingMessage, response: ServerResponse): void {
    const after = request.headers["last-event-id"] ?? new URL(request.url ?? "", standIn.url).searchParams.get("after");
    const position = typeof after === "string" ? after.split(":").map(Number) : undefined;
    standIn.resumed.push(typeof after === "string" ? after : undefined);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(`retry: ${RETRY_MS}\n\n`);
    if (position && position[0] !== epoch) response.write(`id: ${epoch}:${items.length}\nevent: reset\ndata: {}\n\n`);
    else if (position) for (let n = (position[1] ?? 0) + 1; n <= items.length; n++) response.write(eventOf(n));
    response.write(unreadEvent());
    streams.set(response, true);
    most = Math.max(most, streams.size);
    response.on("close", () => streams.delete(response));
  }

  async function mark(verb: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { ids = [] }: { ids?: string[] } = JSON.parse(await textOf(request));
    const at = new Date().toISOString();
    if (verb === "ack") standIn.acked.push(...ids);
    for (const item of items) {
      if (verb === "read-all" || (verb === "read" && ids.includes(item.id))) item.readAt ??= at;
      if (verb === "archive" && ids.includes(item.id)) item.archivedAt ??= at;
    }
    for (const each of streams.keys()) each.write(unreadEvent());
    json(response, 200, { unread: unread() });
  }

  const kept = await listening(createServer(answer));
  standIn.url = `http://127.0.0.1:${kept.port}`;
  return standIn;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/**
 * `/` has nothing but the script: each test puts the component where it wants it. A server of another origin is named by
 * `?connect=`.
 */
async function file({ pathname: path, searchParams }: URL, response: ServerResponse): Promise<void> {
  const csp = CSP.replace("connect-src 'self'", `connect-src 'self' ${searchParams.get("connect") ?? ""}`);
  const headers = { "content-security-policy": csp, "x-content-type-options": "nosniff" };
  const [type, text] =
    path === "/inbox.js"
      ? ["text/javascript", await browserScript("inbox")]
      : path === "/page.css"
        ? ["text/css", ".dark { background: #101218; } body { margin: 0; padding: 24px; text-align: right; }"]
        : ["text/html; charset=utf-8", PAGE];
  response.writeHead(200, { ...headers, "content-type": type }).end(text);
}

const PAGE = `<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css"><script type="module" src="/inbox.js"></script></head>
<body><main><button id="before">before</button></main><button>after</button></body></html>`;
