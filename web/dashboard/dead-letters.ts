// What failed for good.

import { get, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { CHANNELS, LANES } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, Select, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { type Column, Pager, Table } from "./table.ts";
import { count, many, recipientOf } from "./words.ts";

type Letter = {
  notificationId: string;
  channel: string;
  priority: string;
  failedAt: string;
  attempts: number;
  provider?: string;
  error?: string;
  recipient: { [field: string]: unknown };
};
type Requeued = { matched: number; requeued: number; remaining: number; nextCursor: string | null };

const FILTERS = ["channel", "priority", "provider"];
const EVERY_MS = 15_000;
const AT_ONCE = 1_000;

export function DeadLetters({ place }: PageProps): VNode {
  const { query } = place;
  const cursor = query.get("cursor");
  const filter = Object.fromEntries(
    FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name) as string]] : [])),
  );
  const path = withQuery("/v1/dead-letters", { ...filter, cursor });
  const list = useLive(path, (signal) => get<Page<Letter>>(path, signal), cursor === null ? EVERY_MS : undefined);
  const set = (name: string) => (value: string) => refilter(place, { [name]: value, cursor: undefined });
  const mayAct = useMay("send");
  return html`<div class="heading"><h1>Dead letters</h1>
    ${mayAct && html`<div class="actions"><button type="button" onClick=${() => void requeue(filter, list.reload)}>Send again…</button></div>`}</div>
    <p class="lead">What failed for good. Mend what was wrong first; then send again.</p>
    <div class="filters">
      <${Select} label="Channel" value=${query.get("channel") ?? ""} options=${CHANNELS} onPick=${set("channel")} />
      <${Select} label="Lane" value=${query.get("priority") ?? ""} options=${LANES} onPick=${set("priority")} />
    </div>
    <${Card}><${Read} of=${list}>${(page: Page<Letter>) => html`
      ${page.data.length === 0 ? html`<${Empty} title="No dead letters">What has spent its attempts, or was refused for good, would be here.<//>` : html`<${Table} label="Dead letters" items=${page.data} columns=${COLUMNS} keyOf=${(one: Letter) => one.notificationId} />`}
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

/** Counted first, so that the question says how many. */
async function requeue(filter: { [name: string]: string }, reload: () => void): Promise<void> {
  const { matched, nextCursor } = await post<Requeued>("/v1/dead-letters/requeue", { filter, dryRun: true });
  const now = Math.min(matched, AT_ONCE);
  confirm({
    title: "Send them again?",
    text: `${nextCursor === null ? many(matched, "dead letter") : "10,000+ dead letters"} of this filter. ${matched > AT_ONCE ? `The newest ${count(AT_ONCE)} go now.` : "All of them go now, each with a fresh budget of attempts."}`,
    verb: `Send ${count(now)} again`,
    act: async () => {
      const { requeued } = await post<Requeued>("/v1/dead-letters/requeue", { filter, limit: AT_ONCE });
      reload();
      return `${many(requeued, "notification")} ${requeued === 1 ? "is" : "are"} on the way again`;
    },
  });
}
