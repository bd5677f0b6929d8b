// The mailbox: what the provider dev kept instead of sending it. Everything in it is a stranger's text.

import { ask, get, type Page, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Kept } from "./mailbox-message.ts";
import { CHANNELS, type Content, titleOf } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, Select, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { type Column, Pager, Table } from "./table.ts";

export type KeptMessage = {
  id: string;
  notificationId: string;
  channel: string;
  to: string[];
  message: { content: Content };
  at: string;
};

const LOOK_MS = 3_000;

export function Mailbox({ place }: PageProps): VNode {
  const [id] = place.rest;
  return id === undefined ? html`<${List} place=${place} />` : html`<${Kept} key=${id} id=${id} />`;
}

const COLUMNS: Column<KeptMessage>[] = [
  {
    title: "Message",
    isLong: true,
    cell: ({ id, message }) => html`<a href=${linkTo("mailbox", [id])}>${titleOf(message.content)}</a>`,
  },
  { title: "To", isLong: true, cell: ({ to }) => to[0] ?? "–" },
  { title: "Channel", cell: ({ channel }) => channel },
  { title: "Kept", isNumber: true, cell: ({ at }) => html`<${When} at=${at} />` },
];

function List({ place }: PageProps): VNode {
  const { query } = place;
  const cursor = query.get("cursor");
  const fields = { channel: query.get("channel"), search: query.get("search"), cursor };
  const path = withQuery("/v1/dev/messages", fields);
  const list = useLive(path, (signal) => get<Page<KeptMessage>>(path, signal), cursor === null ? LOOK_MS : undefined);
  const maySend = useMay("send");
  const clear = () =>
    confirm({
      title: "Empty the mailbox?",
      text: "All messages that were kept for this tenant are deleted. What was sent is not touched.",
      verb: "Delete all",
      isDangerous: true,
      async act() {
        await ask("DELETE", "/v1/dev/messages");
        list.reload();
        return "The mailbox is empty.";
      },
    });
  return html`
    <div class="heading"><h1>Mailbox</h1>
      ${maySend && html`<button type="button" class="danger" onClick=${clear}>Delete all</button>`}</div>
    <div class="filters">
      <label class="field"><span>Search</span>
        <input type="search" maxlength="200" value=${query.get("search") ?? ""}
          onChange=${(event: Event) => refilter(place, { search: (event.target as HTMLInputElement).value, cursor: undefined })} /></label>
      <${Select} label="Channel" value=${query.get("channel") ?? ""} options=${CHANNELS}
        onPick=${(channel: string) => refilter(place, { channel, cursor: undefined })} />
    </div>
    <${Card}><${Read} of=${list}>${(page: Page<KeptMessage>) => html`
      ${
        page.data.length > 0
          ? html`<${Table} label="Kept messages" items=${page.data} columns=${COLUMNS} keyOf=${(one: KeptMessage) => one.id} />`
          : html`<${Empty} title="Nothing was kept">What goes to the provider <code>dev</code> is here at once, and is sent to nobody.<//>`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("mailbox", [], { ...Object.fromEntries(query), cursor: next }))}
        onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}
