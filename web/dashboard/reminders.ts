// Reminders: what is sent before an event, and what was.

import { useState } from "preact/hooks";
import { ask, get, named, type Page, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, When } from "./parts.ts";
import { linkTo } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { exact } from "./words.ts";

type Reminder = { key: string; at: string; timezone: string; offsets: string[]; offsetsFrom: string };
type Line = { before: string; dueAt: string; status: string; notificationIds: string[]; error?: string };

const EVERY_MS = 15_000;

export function Reminders(_: PageProps): VNode {
  const [chosen, choose] = useState<string>();
  const [cursor, setCursor] = useState<string | null>(null);
  const path = withQuery("/v1/reminders", { cursor, limit: 20 });
  const list = useLive(path, (signal) => get<Page<Reminder>>(path, signal), EVERY_MS);
  const mayChange = useMay("send");
  const columns: Column<Reminder>[] = [
    {
      title: "Reminder",
      isLong: true,
      cell: ({ key }) =>
        html`<button type="button" class="plain" aria-expanded=${chosen === key} onClick=${() => choose(chosen === key ? undefined : key)}>${key}</button>`,
    },
    { title: "Event", cell: ({ at }) => html`<${When} at=${at} />` },
    { title: "Sent before", cell: ({ offsets }) => offsets.join(", ") || "–" },
    { title: "As said by", cell: ({ offsetsFrom }) => offsetsFrom },
    {
      title: "Action",
      cell: ({ key }) =>
        mayChange &&
        html`<button type="button" class="small" aria-label=${`Forget ${key}`} onClick=${() => forget(key, list.reload)}>Forget</button>`,
    },
  ];
  return html`<${Card} title="Reminders"><${Read} of=${list}>${(page: Page<Reminder>) =>
    page.data.length === 0
      ? html`<${Empty} title="No reminders yet">Make one with <code>PUT /v1/reminders/:key</code>: an event, and how long before it to send.<//>`
      : html`<${Table} label="Reminders" items=${page.data} columns=${columns} keyOf=${(one: Reminder) => one.key} />
        ${page.nextCursor !== null && html`<button type="button" onClick=${() => setCursor(page.nextCursor)}>More reminders</button>`}`}<//>
    ${chosen !== undefined && html`<${Plan} key=${chosen} name=${chosen} />`}<//>`;
}

function Plan({ name }: { name: string }): VNode {
  const path = `/v1/reminders/${named(name)}`;
  const reminder = useLive(path, (signal) => get<{ plan: Line[] }>(path, signal), EVERY_MS);
  return html`<h3>Plan of ${name}</h3><${Read} of=${reminder}>${({ plan }: { plan: Line[] }) =>
    plan.length === 0
      ? html`<p class="soft">Nothing is planned.</p>`
      : html`<${Table} label=${`Plan of ${name}`} items=${plan} columns=${LINES} keyOf=${(line: Line) => line.before + line.dueAt} />`}<//>`;
}

const LINES: Column<Line>[] = [
  { title: "Before", cell: ({ before }) => before },
  { title: "Due", cell: ({ dueAt }) => exact(dueAt) },
  { title: "State", cell: ({ status }) => html`<${Status} is=${status} />` },
  {
    title: "Sent",
    isLong: true,
    cell: ({ notificationIds: [id], error }) =>
      id === undefined ? (error ?? "–") : html`<a href=${linkTo("messages", [id])}>${id.slice(0, 13)}…</a>`,
  },
];

function forget(key: string, reload: () => void): void {
  confirm({
    title: "Forget it?",
    text: `1 reminder, ${key}: what is planned for it is cancelled.`,
    verb: "Forget the reminder",
    isDangerous: true,
    act: async () => {
      await ask("DELETE", `/v1/reminders/${named(key)}`);
      reload();
      return "1 reminder was forgotten";
    },
  });
}
