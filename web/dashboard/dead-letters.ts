// What failed for good, by its causes or one by one.

import { get, type Page, withQuery } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { CHANNELS, LANES } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, Select, When } from "./parts.ts";
import { PlanButtons } from "./plans.ts";
import { go, linkTo, type Place, refilter } from "./route.ts";
import { type Column, Pager, Table } from "./table.ts";
import { count, many, recipientOf } from "./words.ts";

type Letter = {
  notificationId: string;
  channel: string;
  failedAt: string;
  attempts: number;
  provider?: string;
  error?: string;
  recipient: { [field: string]: unknown };
};
type Group = {
  cause?: string;
  provider?: string;
  channel: string;
  count: number;
  newestAt: string;
  oldestAt: string;
  examples: string[];
};
type Groups = Page<Group> & { total: number; looked: number };
type Filter = { [name: string]: string };

const FILTERS = ["channel", "priority", "provider", "cause", "error"];
const EVERY_MS = 15_000;

function filterOf({ query }: Place): Filter {
  return Object.fromEntries(FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name) as string]] : [])));
}

export function DeadLetters({ place }: PageProps): VNode {
  const filter = filterOf(place);
  const isByCause = filter.cause === undefined;
  return html`<div class="heading"><h1>Dead letters</h1><${PlanButtons} filter=${filter} /></div>
    <p class="lead">What failed for good. Mend what was wrong first; then plan to send again.</p>
    <${Filters} place=${place} />
    ${isByCause && html`<${Causes} filter=${filter} />`}
    <${Letters} place=${place} filter=${filter} title=${isByCause ? "One by one" : (filter.cause ?? "")} />`;
}

function Filters({ place }: PageProps): VNode {
  const { query } = place;
  const set = (name: string) => (value: string) => refilter(place, { [name]: value, cursor: undefined });
  const search = (event: Event) => {
    event.preventDefault();
    set("error")(String(new FormData(event.target as HTMLFormElement).get("error") ?? "").trim());
  };
  return html`<form class="filters" role="search" onSubmit=${search}>
    <label class="field wide"><span>Part of the error</span><input name="error" type="search" data-search maxlength="200" key=${query.get("error") ?? ""} defaultValue=${query.get("error") ?? ""} placeholder="Press / to search" /></label>
    <${Select} label="Channel" value=${query.get("channel") ?? ""} options=${CHANNELS} onPick=${set("channel")} />
    <${Select} label="Lane" value=${query.get("priority") ?? ""} options=${LANES} onPick=${set("priority")} />
    <button>Search</button>
    ${query.has("cause") && html`<button type="button" onClick=${() => refilter(place, { cause: undefined, provider: undefined, cursor: undefined })}>All causes</button>`}
  </form>`;
}

function Causes({ filter }: { filter: Filter }): VNode {
  const path = withQuery("/v1/dead-letters/groups", filter);
  const groups = useLive(path, (signal) => get<Groups>(path, signal), EVERY_MS);
  const columns: Column<Group>[] = [
    {
      title: "Cause",
      isLong: true,
      cell: ({ cause, provider }) =>
        cause === undefined
          ? "no error was given"
          : html`<a href=${linkTo("dead-letters", [], { ...filter, cause, provider })}>${cause}</a>`,
    },
    { title: "Count", isNumber: true, cell: ({ count: all }) => count(all) },
    { title: "Channel", cell: ({ channel }) => channel },
    { title: "Provider", cell: ({ provider }) => provider ?? "–" },
    { title: "Newest", isNumber: true, cell: ({ newestAt }) => html`<${When} at=${newestAt} />` },
    { title: "Oldest", isNumber: true, cell: ({ oldestAt }) => html`<${When} at=${oldestAt} />` },
  ];
  const found = groups.value;
  const aside =
    found &&
    html`<span class="soft">${found.nextCursor === null ? many(found.total, "dead letter") : `${count(found.total)} among the newest ${count(found.looked)}`}</span>`;
  return html`<${Card} title="By cause" aside=${aside}><${Read} of=${groups}>${({ data }: Groups) =>
    data.length === 0
      ? html`<${Empty} title="No dead letters">What has spent its attempts, or was refused for good, would be here.<//>`
      : html`<${Table} label="Causes" items=${data} columns=${columns} keyOf=${({ cause, provider, channel }: Group) => `${cause} ${provider} ${channel}`} />`}<//><//>`;
}

function Letters({ place, filter, title }: PageProps & { filter: Filter; title: string }): VNode | null {
  const cursor = place.query.get("cursor");
  const path = withQuery("/v1/dead-letters", { ...filter, cursor });
  const list = useLive(path, (signal) => get<Page<Letter>>(path, signal), cursor === null ? EVERY_MS : undefined);
  if (list.value?.data.length === 0 && list.value.nextCursor === null && filter.cause === undefined) return null;
  return html`<${Card} title=${title}><${Read} of=${list}>${(page: Page<Letter>) => html`
    ${page.data.length === 0 ? html`<${Empty} title="None so far">Look further with the next page, or take a filter away.<//>` : html`<${Table} label="Dead letters" items=${page.data} columns=${COLUMNS} keyOf=${(one: Letter) => one.notificationId} />`}
    <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("dead-letters", [], { ...filter, cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}

const COLUMNS: Column<Letter>[] = [
  {
    title: "Error",
    isLong: true,
    cell: ({ notificationId, error }) =>
      html`<a href=${linkTo("messages", [notificationId])}>${error ?? "no error was given"}</a>`,
  },
  { title: "To", isLong: true, cell: ({ recipient }) => recipientOf(recipient) },
  { title: "Channel", cell: ({ channel }) => channel },
  { title: "Provider", cell: ({ provider }) => provider ?? "–" },
  { title: "Attempts", isNumber: true, cell: ({ attempts }) => attempts },
  { title: "Failed", isNumber: true, cell: ({ failedAt }) => html`<${When} at=${failedAt} />` },
];
