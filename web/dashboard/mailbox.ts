// The mailbox: what the provider dev kept instead of sending it. Everything in it is a stranger's text.

import { ask, get, type Page, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { Development } from "./development.ts";
import { html, type VNode } from "./html.ts";
import { type Live, useLive } from "./live.ts";
import { Kept } from "./mailbox-message.ts";
import { CHANNELS, type Content, titleOf } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, Select, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { type Column, Pager, Table } from "./table.ts";
import { recipientOf } from "./words.ts";

export type KeptMessage = {
  id: string;
  notificationId: string;
  channel: string;
  message: {
    content: Content;
    recipient?: { [field: string]: unknown };
    device?: { token: string; platform?: string };
  };
  at: string;
};

const KEPT = "/v1/dev/messages";
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
  { title: "To", isLong: true, cell: ({ message: { recipient } }) => recipientOf(recipient) },
  { title: "Channel", cell: ({ channel }) => channel },
  { title: "Kept", isNumber: true, cell: ({ at }) => html`<${When} at=${at} />` },
];

function List({ place }: PageProps): VNode {
  const { query } = place;
  const cursor = query.get("cursor");
  const fields = { channel: query.get("channel"), search: query.get("search"), cursor };
  const path = withQuery(KEPT, fields);
  async function read(signal: AbortSignal): Promise<Page<KeptMessage>> {
    const shown = list.value;
    // A page may be megabytes, so while its first message is the newest it is not read again.
    const newest = shown && (await get<Page<KeptMessage>>(withQuery(KEPT, { ...fields, limit: 1 }), signal));
    return newest && newest.data[0]?.id === shown.data[0]?.id ? shown : get(path, signal);
  }
  const list: Live<Page<KeptMessage>> = useLive(path, read, cursor === null ? LOOK_MS : undefined);
  const maySend = useMay("send");
  const searched = query.get("search") ?? "";
  const search = (event: Event) => {
    event.preventDefault();
    const text = String(new FormData(event.target as HTMLFormElement).get("search") ?? "").trim();
    refilter(place, { search: text, cursor: undefined });
  };
  const clear = () =>
    confirm({
      title: "Empty the mailbox?",
      text: "All messages that were kept for this tenant are deleted. What was sent is not touched.",
      verb: "Delete all",
      isDangerous: true,
      async act() {
        await ask("DELETE", KEPT);
        list.reload();
        return "The mailbox is empty.";
      },
    });
  return html`
    <div class="heading"><h1>Mailbox</h1>
      ${maySend && html`<button type="button" class="danger" onClick=${clear}>Delete all</button>`}</div>
    <form class="filters" role="search" onSubmit=${search}>
      <label class="field wide"><span>Search</span>
        <input name="search" type="search" data-search maxlength="200" key=${searched} defaultValue=${searched} placeholder="Press / to search" /></label>
      <button>Search</button>
      <${Select} label="Channel" value=${query.get("channel") ?? ""} options=${CHANNELS}
        onPick=${(channel: string) => refilter(place, { channel, cursor: undefined })} />
    </form>
    <${Card}><${Read} of=${list}>${(page: Page<KeptMessage>) => html`
      ${
        page.data.length > 0
          ? html`<${Table} label="Kept messages" items=${page.data} columns=${COLUMNS} keyOf=${(one: KeptMessage) => one.id} />`
          : html`<${Empty} title="Nothing was kept">What goes to the provider <code>dev</code> is here at once, and is sent to nobody.<//>`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("mailbox", [], { ...Object.fromEntries(query), cursor: next }))}
        onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>
    <${Development} />`;
}
