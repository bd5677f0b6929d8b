// Who may ask, and who did what.

import { ask, get, named, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import type { PageProps } from "./pages.ts";
import { Card, Code, Empty, Read, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";

type Key = {
  id: string;
  tenant: string;
  name: string;
  scopes: string[];
  createdAt: string;
  expiresAt?: string;
  revokedAt?: string;
  lastUsedAt?: string;
};
type Line = {
  at: string;
  actor: { kind: string; id: string; name?: string; session?: string };
  action: string;
  object: string;
  tenant: string;
  change: { before?: object; after?: object };
  address?: string;
};

const SCOPES = ["read", "send", "admin"];

export function Keys({ place }: PageProps): VNode {
  const keys = useLive("keys", (signal) => get<{ data: Key[] }>("/v1/keys", signal));
  return html`<h1>Keys and audit</h1><p class="lead">Who may ask for what, and what was done with it.</p>
    <${Card} title="Keys"><${Make} reload=${keys.reload} />
      <${Read} of=${keys}>${({ data }: { data: Key[] }) =>
        data.length === 0
          ? html`<${Empty} title="No keys are stored">You came with the one of the environment.<//>`
          : html`<${Table} label="Keys" items=${data} columns=${columnsOf(keys.reload)} keyOf=${(one: Key) => one.id} />`}<//><//>
    <${Audit} place=${place} />`;
}

function stateOf({ revokedAt, expiresAt }: Key): VNode {
  if (revokedAt !== undefined) return html`<${Status} is="revoked" tone="quiet" />`;
  const isOver = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now();
  return html`<${Status} is=${isOver ? "expired" : "active"} />`;
}

const columnsOf = (reload: () => void): Column<Key>[] => [
  {
    title: "Key",
    isLong: true,
    cell: ({ name, id }) => html`<strong>${name}</strong> <code class="soft">${id}</code>`,
  },
  { title: "State", cell: stateOf },
  { title: "Tenant", cell: ({ tenant }) => tenant },
  { title: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
  { title: "Last used", isNumber: true, cell: ({ lastUsedAt }) => html`<${When} at=${lastUsedAt} />` },
  {
    title: "Action",
    cell: (key) =>
      key.revokedAt === undefined &&
      html`<button type="button" class="small" onClick=${() => revoke(key, reload)}>Revoke<span class="hidden"> ${key.name}</span></button>`,
  },
];

function revoke({ id, name }: Key, reload: () => void): void {
  confirm({
    title: "Revoke it?",
    text: html`<p>1 key, <strong>${name}</strong>, and every session that was begun with it. Whoever uses it is refused within seconds.</p>`,
    verb: "Revoke",
    isDangerous: true,
    act: async () => {
      await ask("DELETE", `/v1/keys/${named(id)}`);
      reload();
      return "1 key was revoked";
    },
  });
}

function Make({ reload }: { reload: () => void }): VNode {
  const submit = (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const fields = new FormData(form);
    const name = String(fields.get("name"));
    const scopes = fields.getAll("scope").map(String);
    confirm({
      title: "Make a key?",
      text: html`<p>1 key, <strong>${name}</strong>, with the scopes ${scopes.join(", ")}.</p>`,
      verb: "Make it",
      act: async () => {
        const { key } = await post<{ key: string }>("/v1/keys", { name, scopes });
        form.reset();
        reload();
        return {
          title: "The new key",
          show: html`<p class="confirm-text">It is shown only this once: nothing but its hash is kept.</p><${Code} label="Key" of=${key} />`,
        };
      },
    });
  };
  return html`<form class="filters" onSubmit=${submit}>
    <label class="field"><span>Name of a new key</span><input name="name" required maxlength="100" /></label>
    <fieldset class="line"><legend class="hidden">Scopes</legend>${SCOPES.map((scope, n) => html`<label class="check"><input type="checkbox" name="scope" value=${scope} defaultChecked=${n === 0} /> ${scope}</label>`)}</fieldset>
    <button>Make a key</button></form>`;
}

const LINES: Column<Line>[] = [
  { title: "When", cell: ({ at }) => html`<${When} at=${at} />` },
  {
    title: "Who",
    isLong: true,
    cell: ({ actor }) =>
      html`${actor.name ?? actor.id} <span class="soft">${actor.kind}${actor.session !== undefined && ", signed in"}</span>`,
  },
  { title: "Did", cell: ({ action }) => html`<code>${action}</code>` },
  { title: "To", isLong: true, cell: ({ object }) => object },
  {
    title: "Change",
    isLong: true,
    cell: ({ change }) =>
      Object.keys(change).length === 0
        ? "–"
        : html`<details><summary>${Object.keys({ ...change.before, ...change.after }).join(", ")}</summary><${Code} label="Change" of=${change} /></details>`,
  },
  { title: "From", cell: ({ address }) => address ?? "–" },
];

function Audit({ place }: PageProps): VNode {
  const { query } = place;
  const cursor = query.get("cursor");
  const path = withQuery("/v1/audit", { actor: query.get("actor"), object: query.get("object"), cursor });
  const list = useLive(path, (signal) => get<Page<Line>>(path, signal));
  const search = (event: Event) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    refilter(place, {
      actor: String(fields.get("actor")).trim(),
      object: String(fields.get("object")).trim(),
      cursor: undefined,
    });
  };
  return html`<${Card} title="Audit log">
    <form class="filters" role="search" onSubmit=${search}>
      <label class="field"><span>Who</span><input name="actor" data-search key=${query.get("actor") ?? ""} defaultValue=${query.get("actor") ?? ""} placeholder="a key's name or id" /></label>
      <label class="field"><span>What</span><input name="object" key=${query.get("object") ?? ""} defaultValue=${query.get("object") ?? ""} placeholder="template:welcome" /></label>
      <button>Search</button></form>
    <${Read} of=${list}>${(page: Page<Line>) => html`
      ${page.data.length === 0 ? html`<${Empty} title="Nothing is logged">Every change by a key, a process or the command line is written here.<//>` : html`<${Table} label="Audit log" items=${page.data} columns=${LINES} keyOf=${({ at, action, object }: Line) => at + action + object} />`}
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("keys", [], { ...Object.fromEntries(query), cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}
