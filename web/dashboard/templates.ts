// Texts that are kept here: their versions, and what they look like when filled.

import { useState } from "preact/hooks";
import { get, named, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { type Live, useLive } from "./live.ts";
import type { Content } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Code, Empty, Read, Trouble, When } from "./parts.ts";
import { ContentView } from "./rendered.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";

type Version = {
  id: string;
  version: number;
  isActive: boolean;
  activeVersion: number;
  latestVersion: number;
  channel: string;
  name: string;
  createdAt: string;
};
type Whole = Version & { content: Content };

export function Templates({ place }: PageProps): VNode {
  const [id] = place.rest;
  return id === undefined ? html`<${List} place=${place} />` : html`<${One} key=${id} id=${id} />`;
}

function List({ place }: PageProps): VNode {
  const cursor = place.query.get("cursor");
  const path = withQuery("/v1/templates", { cursor });
  const list = useLive(path, (signal) => get<Page<Version>>(path, signal));
  return html`<h1>Templates</h1><p class="lead">Texts that are kept here, in versions and languages, and filled for each message.</p>
    <${Card}><${Read} of=${list}>${(page: Page<Version>) => html`
      ${
        page.data.length > 0
          ? html`<${Table} label="Templates" items=${page.data} columns=${COLUMNS} keyOf=${(one: Version) => one.id} />`
          : html`<${Empty} title="No templates yet">Store one with <code>PUT /v1/templates/:id</code>, and name it in a send as <code>templateId</code>.<//>`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("templates", [], { cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}

const COLUMNS: Column<Version>[] = [
  { title: "Template", isLong: true, cell: ({ id }) => html`<a href=${linkTo("templates", [id])}>${id}</a>` },
  { title: "Name", isLong: true, cell: ({ name }) => name },
  { title: "Channel", cell: ({ channel }) => channel },
  { title: "Active", isNumber: true, cell: ({ activeVersion }) => activeVersion },
  { title: "Latest", isNumber: true, cell: ({ latestVersion }) => latestVersion },
  { title: "Stored", isNumber: true, cell: ({ createdAt }) => html`<${When} at=${createdAt} />` },
];

function One({ id }: { id: string }): VNode {
  const path = `/v1/templates/${named(id)}`;
  const template = useLive(path, (signal) => get<Whole>(path, signal));
  const versions = useLive(`${path}/versions`, (signal) => get<Page<Version>>(`${path}/versions`, signal));
  const reload = () => {
    template.reload();
    versions.reload();
  };
  return html`<p><a href=${linkTo("templates")}>Templates</a></p>
    <${Read} of=${template}>${(one: Whole) => html`
      <div class="heading"><h1>${one.name}</h1><p><code>${id}</code> · ${one.channel}</p></div>
      <${Preview} path=${path} template=${one} versions=${versions} />
      <div class="columns">
        <${Card} title="Versions"><${Versions} path=${path} versions=${versions} reload=${reload} /><//>
        <${Card} title=${`What version ${one.version} says`}><${Code} label="Template" of=${one.content} /><//>
      </div>`}<//>`;
}

function Versions({
  path,
  versions,
  reload,
}: {
  path: string;
  versions: Live<Page<Version>>;
  reload: () => void;
}): VNode {
  const mayChange = useMay("admin");
  const columns: Column<Version>[] = [
    { title: "Version", cell: ({ version }) => version },
    {
      title: "State",
      cell: ({ isActive }) => (isActive ? html`<${Status} is="active" />` : html`<${Status} is="kept" />`),
    },
    { title: "Stored", cell: ({ createdAt }) => html`<${When} at=${createdAt} />` },
    {
      title: "Action",
      cell: ({ version, isActive }) =>
        mayChange &&
        !isActive &&
        html`<button type="button" class="small" onClick=${() => activate(path, version, reload)}>Activate<span class="hidden"> version ${version}</span></button>`,
    },
  ];
  return html`<${Read} of=${versions}>${({ data }: Page<Version>) => html`<${Table} label="Versions" items=${data} columns=${columns} keyOf=${(one: Version) => String(one.version)} />`}<//>`;
}

function activate(path: string, version: number, reload: () => void): void {
  confirm({
    title: `Send version ${version}?`,
    text: "1 template: what is sent from now on says what this version says. Notifications that name a version keep to it.",
    verb: "Activate",
    act: async () => {
      await post(`${path}/activate`, { version });
      reload();
      return `Version ${version} is active`;
    },
  });
}

type Filled = { version: number; locale: string; content: Content };

function Preview({
  path,
  template,
  versions,
}: {
  path: string;
  template: Whole;
  versions: Live<Page<Version>>;
}): VNode {
  const [filled, setFilled] = useState<Filled>();
  const [error, setError] = useState<unknown>();
  const fill = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const locale = String(form.get("locale") ?? "").trim();
    setError(undefined);
    try {
      const variables = JSON.parse(String(form.get("variables") || "{}"));
      const body = { variables, version: Number(form.get("version")), ...(locale !== "" && { locale }) };
      post<Filled>(`${path}/preview`, body).then(setFilled, setError);
    } catch {
      setError(new Error("The sample data is not JSON."));
    }
  };
  const numbers = versions.value?.data.map(({ version }) => version) ?? [template.version];
  return html`<${Card} title="Preview">
    <form class="preview" onSubmit=${fill}>
      <label class="field"><span>Sample data, as JSON</span><textarea name="variables" spellcheck="false">${sampleOf(template.content)}</textarea></label>
      <div class="filters">
        <label class="field"><span>Version</span><select name="version">${numbers.map((number) => html`<option value=${number} selected=${number === template.version}>${number}</option>`)}</select></label>
        <label class="field"><span>Language</span><input name="locale" placeholder="default" maxlength="35" /></label>
        <button class="primary">Show</button>
      </div>
    </form>
    <${Trouble} error=${error} />
    ${filled ? html`<p class="soft">Version ${filled.version}, language ${filled.locale}.</p><${ContentView} key=${JSON.stringify(filled)} channel=${template.channel} content=${filled.content} />` : html`<p class="soft">Fill it with sample data to see what a reader would.</p>`}
  <//>`;
}

/** The variables that its texts name, to begin with. */
function sampleOf(content: Content): string {
  const names = new Set<string>();
  for (const [, name = ""] of JSON.stringify(content).matchAll(/\{\{-?\s*([a-zA-Z_]\w*)/g)) names.add(name);
  names.delete("recipient");
  return JSON.stringify(Object.fromEntries([...names].map((name) => [name, name])), undefined, 2);
}
