// All notifications, the newest first: by status, channel, lane, user, provider and time; or one by its id.

import { get, type Page, withQuery } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Message } from "./message.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, Select, When } from "./parts.ts";
import { go, linkTo, type Place, refilter } from "./route.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";
import { count, recipientOf } from "./words.ts";

export type Content = { [field: string]: unknown };
export type Listed = {
  notificationId: string;
  status: string;
  channel: string;
  priority: string;
  enqueuedAt: string;
  recipient: { [field: string]: unknown };
  content: Content;
};

export const STATUSES = [
  ...["pending", "queued", "processing", "sent", "delivered"],
  ...["failed", "cancelled", "expired", "suppressed", "ambiguous"],
];
export const CHANNELS = ["email", "push", "sms", "slack", "webhook", "inbox", "console", "file"];
export const LANES = ["urgent", "high", "normal", "low"];
const SINCE: { [name: string]: number } = { "last hour": 3_600_000, "last day": 86_400_000, "last week": 604_800_000 };
/** What a text may be looked for in, and what the API calls it. */
const SEARCHES: { [name: string]: string } = {
  user: "userId",
  address: "recipient",
  template: "templateId",
  error: "error",
};
const FILTERS = ["status", "channel", "priority", "provider", ...Object.values(SEARCHES)];
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const SCANNED_MS = 15_000;
/** Beyond it nobody counts. */
const MOST_COUNTED = 10_000;

export function Messages({ place }: PageProps): VNode {
  const [id] = place.rest;
  return id === undefined ? html`<${List} place=${place} />` : html`<${Message} key=${id} id=${id} />`;
}

function pathOf({ query }: Place): string {
  const since = SINCE[query.get("since") ?? ""];
  return withQuery("/v1/notifications", {
    ...Object.fromEntries(FILTERS.map((name) => [name, query.get(name)])),
    // To the minute: else every look were another question.
    since: since === undefined ? undefined : new Date(Math.floor((Date.now() - since) / 60_000) * 60_000).toISOString(),
    cursor: query.get("cursor"),
  });
}

function List({ place }: PageProps): VNode {
  const { query } = place;
  const cursor = query.get("cursor");
  const path = pathOf(place);
  const list = useLive(path, (signal) => get<Page<Listed>>(path, signal), cursor === null ? SCANNED_MS : undefined);
  const isFiltered = [...FILTERS, "since"].some((name) => query.has(name));
  return html`
    <div class="heading"><h1>Messages</h1><${HowMany} query=${query} /></div>
    <${Filters} place=${place} />
    <${Card}><${Read} of=${list}>${(page: Page<Listed>) => html`
      ${
        page.data.length > 0
          ? html`<${Table} label="Messages" items=${page.data} columns=${COLUMNS} keyOf=${(one: Listed) => one.notificationId} />`
          : page.nextCursor === null
            ? html`<${Nothing} isFiltered=${isFiltered} />`
            : html`<${Empty} title="None so far">With these filters there are few: look further with the next page.<//>`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("messages", [], { ...Object.fromEntries(query), cursor: next }))}
        onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}

export const COLUMNS: Column<Listed>[] = [
  {
    title: "Message",
    isLong: true,
    cell: ({ notificationId, content }) =>
      html`<a href=${linkTo("messages", [notificationId])}>${titleOf(content)}</a>`,
  },
  { title: "Status", cell: ({ status }) => html`<${Status} is=${status} />` },
  { title: "To", isLong: true, cell: ({ recipient }) => recipientOf(recipient) },
  { title: "Channel", cell: ({ channel }) => channel },
  { title: "Lane", cell: ({ priority }) => priority },
  { title: "Accepted", isNumber: true, cell: ({ enqueuedAt }) => html`<${When} at=${enqueuedAt} />` },
];

const LONGEST = 80;

export function titleOf({ subject, title, body, textBody, templateId }: Content): string {
  const found = [subject, title, body, textBody].find((text) => typeof text === "string" && text !== "");
  if (typeof found === "string") return found.length > LONGEST ? `${found.slice(0, LONGEST)}…` : found;
  return typeof templateId === "string" ? `template ${templateId}` : "without a title";
}

/** Of a status the ledger knows how many there are; otherwise nobody counts. */
function HowMany({ query }: { query: URLSearchParams }): VNode | null {
  const ledger = useLive("ledger", (signal) => get<{ [name: string]: number }>("/v1/ledger", signal), SCANNED_MS);
  const others = [...FILTERS.slice(1), "since"].some((name) => query.has(name));
  const status = query.get("status");
  const known = ledger.value?.[status ?? "accepted"];
  if (others || typeof known !== "number") return null;
  return html`<p>${known > MOST_COUNTED ? `${count(MOST_COUNTED)}+` : count(known)} ${status ?? "in all"}</p>`;
}

function Nothing({ isFiltered }: { isFiltered: boolean }): VNode {
  return isFiltered
    ? html`<${Empty} title="Nothing matches">Take a filter away, or look at all of them.<//>`
    : html`<${Empty} title="No messages yet">Send the first with <code>POST /v1/notifications</code>; it will be here at once. See <a href="/docs">the API</a>.<//>`;
}

function Filters({ place }: PageProps): VNode {
  const { query } = place;
  const set = (name: string) => (value: string) => refilter(place, { [name]: value, cursor: undefined });
  const [by = "user", field = ""] = Object.entries(SEARCHES).find(([, name]) => query.has(name)) ?? [];
  const searched = query.get(field) ?? "";
  const search = (event: Event) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    const text = String(fields.get("search") ?? "").trim();
    if (ID.test(text)) return go(linkTo("messages", [text.toLowerCase()]));
    const none = Object.fromEntries(Object.values(SEARCHES).map((name) => [name, undefined]));
    refilter(place, { ...none, [SEARCHES[String(fields.get("by"))] ?? "userId"]: text, cursor: undefined });
  };
  const select = (name: string, label: string, options: readonly string[]) =>
    html`<${Select} label=${label} value=${query.get(name) ?? ""} options=${options} onPick=${set(name)} />`;
  return html`<form class="filters" role="search" onSubmit=${search}>
    <label class="field wide"><span>Search, or the id of a notification</span>
      <input name="search" type="search" data-search key=${searched} defaultValue=${searched} maxlength="2048" placeholder="Press / to search" /></label>
    <label class="field narrow"><span>Search by</span><select name="by" key=${by}>${Object.keys(SEARCHES).map((name) => html`<option selected=${name === by}>${name}</option>`)}</select></label>
    <button>Search</button>
    ${select("status", "Status", STATUSES)}${select("channel", "Channel", CHANNELS)}${select("priority", "Lane", LANES)}${select("since", "Accepted", Object.keys(SINCE))}
  </form>`;
}
