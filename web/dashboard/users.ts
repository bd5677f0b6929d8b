// One person: where they can be pushed to, what is in their inbox, what was sent to them. And whom nothing is sent to.

import { useState } from "preact/hooks";
import { ask, get, named, type Page, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { COLUMNS, type Listed } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Read, When } from "./parts.ts";
import { go, linkTo } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { count } from "./words.ts";

type Device = { token: string; platform: string; active: boolean; updatedAt: string; deadReason?: string };
type Item = { id: string; title: string | null; body: string | null; createdAt: string; readAt: string | null };
type Inbox = Page<Item> & { unread: number };
type Suppression = { address: string; why: string; reason?: string; at: string };

export function Users({ place }: PageProps): VNode {
  const [userId] = place.rest;
  const search = (event: Event) => {
    event.preventDefault();
    const text = String(new FormData(event.target as HTMLFormElement).get("user") ?? "").trim();
    if (text !== "") go(linkTo("users", [text]));
  };
  return html`<h1>Users</h1><p class="lead">Who was sent what, and where they can be reached. Carillon knows people by the ids that you send.</p>
    <form class="filters" role="search" onSubmit=${search}><label class="field wide"><span>User id</span>
      <input name="user" type="search" data-search key=${userId ?? ""} defaultValue=${userId ?? ""} placeholder="Press / to search" /></label><button>Look up</button></form>
    ${userId === undefined ? html`<${Suppressions} />` : html`<${One} key=${userId} userId=${userId} />`}`;
}

function One({ userId }: { userId: string }): VNode {
  const ofUser = `/v1/users/${named(userId)}`;
  const devices = useLive(`${ofUser}/devices`, (signal) => get<{ data: Device[] }>(`${ofUser}/devices`, signal));
  const inbox = useLive(`inbox ${userId}`, (signal) => get<Inbox>(`/v1/inbox/${named(userId)}?limit=20`, signal));
  const path = withQuery("/v1/notifications", { userId, limit: 20 });
  const messages = useLive(path, (signal) => get<Page<Listed>>(path, signal));
  return html`<div class="heading"><h2 class="person">${userId}</h2><${Forget} userId=${userId} path=${ofUser} /></div>
    <${Card} title="Messages" aside=${html`<a href=${linkTo("messages", [], { userId })}>All of them</a>`}><${Read} of=${messages}>${({
      data,
    }: Page<Listed>) =>
      data.length === 0
        ? html`<${Empty} title="Nothing was sent to this user">Check the id: it is the one of <code>recipient.userId</code>.<//>`
        : html`<${Table} label="Messages" items=${data} columns=${COLUMNS} keyOf=${(one: Listed) => one.notificationId} />`}<//><//>
    <div class="columns">
      <${Card} title="Inbox" aside=${inbox.value && html`<span class="soft">${count(inbox.value.unread)} unread</span>`}><${Read} of=${inbox}>${({
        data,
      }: Inbox) =>
        data.length === 0
          ? html`<${Empty} title="The inbox is empty" />`
          : html`<${Table} label="Inbox" items=${data} columns=${ITEMS} keyOf=${(item: Item) => item.id} />`}<//><//>
      <${Card} title="Devices"><${Read} of=${devices}>${({ data }: { data: Device[] }) =>
        data.length === 0
          ? html`<${Empty} title="No devices">An application registers them with <code>PUT /v1/users/:userId/devices/:token</code>.<//>`
          : html`<${Table} label="Devices" items=${data} columns=${DEVICES} keyOf=${(device: Device) => device.token} />`}<//><//>
    </div>`;
}

const ITEMS: Column<Item>[] = [
  {
    title: "Item",
    isLong: true,
    cell: ({ id, title, body }) => html`<a href=${linkTo("messages", [id])}>${title ?? body ?? "without a title"}</a>`,
  },
  {
    title: "State",
    cell: ({ readAt }) =>
      readAt === null ? html`<${Status} is="unread" tone="info" />` : html`<${Status} is="read" />`,
  },
  { title: "Came", isNumber: true, cell: ({ createdAt }) => html`<${When} at=${createdAt} />` },
];
const DEVICES: Column<Device>[] = [
  {
    title: "Device",
    isLong: true,
    cell: ({ token }) => html`<code>${token.length > 24 ? `${token.slice(0, 24)}…` : token}</code>`,
  },
  { title: "Platform", cell: ({ platform }) => platform },
  {
    title: "State",
    cell: ({ active, deadReason }) => html`<${Status} is=${active ? "active" : "dead"} /> ${deadReason}`,
  },
  { title: "Seen", isNumber: true, cell: ({ updatedAt }) => html`<${When} at=${updatedAt} />` },
];

function Forget({ userId, path }: { userId: string; path: string }): VNode | null {
  if (!useMay("admin")) return null;
  const forget = () =>
    confirm({
      title: "Forget this person?",
      text: html`<p>1 user, <strong>${userId}</strong>. What waits for them is cancelled; what identifies them is removed or blanked wherever it is kept. It cannot be undone.</p>`,
      verb: "Forget them",
      isDangerous: true,
      act: async () => {
        await ask("DELETE", path);
        return "1 user is being forgotten";
      },
    });
  return html`<div class="actions"><button type="button" onClick=${forget}>Forget this person</button></div>`;
}

function Suppressions(): VNode {
  const [cursor, setCursor] = useState<string>();
  const path = withQuery("/v1/suppressions", { cursor });
  const list = useLive(path, (signal) => get<Page<Suppression>>(path, signal));
  const mayChange = useMay("send");
  const columns: Column<Suppression>[] = [
    { title: "Address", isLong: true, cell: ({ address }) => address },
    { title: "Why", cell: ({ why, reason }) => html`<${Status} is=${why} /> ${reason}` },
    { title: "Since", isNumber: true, cell: ({ at }) => html`<${When} at=${at} />` },
    {
      title: "Action",
      cell: ({ address }) =>
        mayChange &&
        html`<button type="button" class="small" onClick=${() => lift(address, list.reload)}>Lift<span class="hidden"> ${address}</span></button>`,
    },
  ];
  return html`<${Card} title="Suppressed addresses" aside=${mayChange && html`<${Suppress} reload=${list.reload} />`}><${Read} of=${list}>${(
    page: Page<Suppression>,
  ) =>
    page.data.length === 0
      ? html`<${Empty} title="Nobody is suppressed">Hard bounces and complaints put addresses here by themselves.<//>`
      : html`<${Table} label="Suppressed addresses" items=${page.data} columns=${columns} keyOf=${(one: Suppression) => one.address} />
        ${page.nextCursor !== null && html`<button type="button" onClick=${() => setCursor(page.nextCursor ?? undefined)}>More addresses</button>`}`}<//><//>`;
}

function Suppress({ reload }: { reload: () => void }): VNode {
  const submit = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const address = String(new FormData(form).get("address") ?? "").trim();
    confirm({
      title: "Send nothing more there?",
      text: html`<p>1 address, <strong>${address}</strong>: what is sent to it from now on ends as suppressed.</p>`,
      verb: "Suppress",
      act: async () => {
        await ask("PUT", `/v1/suppressions/${named(address)}`, { body: {} });
        form.reset();
        reload();
        return "1 address is suppressed";
      },
    });
  };
  return html`<form class="line" onSubmit=${submit}><input class="short" name="address" aria-label="Address to suppress" placeholder="ada@example.com" required minlength="3" maxlength="254" /><button class="small">Suppress</button></form>`;
}

function lift(address: string, reload: () => void): void {
  confirm({
    title: "Send to it again?",
    text: html`<p>1 address, <strong>${address}</strong>, may be sent to again.</p>`,
    verb: "Lift",
    act: async () => {
      await ask("DELETE", `/v1/suppressions/${named(address)}`);
      reload();
      return "1 address may be sent to again";
    },
  });
}
