// What comes by itself: recurring sends, and reminders before events.

import { ask, get, named, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { type Live, useLive } from "./live.ts";
import { titleOf } from "./messages.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Facts, Read, When } from "./parts.ts";
import { Reminders } from "./reminders.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";
import { exact } from "./words.ts";

type Schedule = {
  key: string;
  cron?: string;
  every?: string;
  timezone: string;
  until?: string;
  paused: boolean;
  nextAt?: string;
  error?: string;
  notification: { channel?: string; content?: { [field: string]: unknown } };
};
type Run = { tick: string; at: string; outcome: string; skipped: number; notificationIds: string[]; error?: string };

const EVERY_MS = 15_000;
const INSTANTS = 10;
const rhythmOf = ({ cron, every, timezone }: Schedule) => `${cron ?? `every ${every}`} · ${timezone}`;

export function Schedules({ place }: PageProps): VNode {
  const [key] = place.rest;
  return key === undefined ? html`<${List} place=${place} />` : html`<${One} key=${key} name=${key} />`;
}

function List({ place }: PageProps): VNode {
  const cursor = place.query.get("cursor");
  const path = withQuery("/v1/schedules", { cursor });
  const list = useLive(path, (signal) => get<Page<Schedule>>(path, signal), EVERY_MS);
  return html`<h1>Schedules and reminders</h1><p class="lead">Sends that come by themselves. Each tick fires once, however many replicas run.</p>
    <${Card} title="Schedules"><${Read} of=${list}>${(page: Page<Schedule>) => html`
      ${
        page.data.length > 0
          ? html`<${Table} label="Schedules" items=${page.data} columns=${COLUMNS} keyOf=${(one: Schedule) => one.key} />`
          : html`<${Empty} title="No schedules yet">Make one with <code>PUT /v1/schedules/:key</code>: a cron line, or every so often.<//>`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("schedules", [], { cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>
    <${Reminders} place=${place} />`;
}

const stateOf = ({ paused, error }: Schedule): VNode =>
  paused
    ? html`<${Status} is="paused" />`
    : error === undefined
      ? html`<${Status} is="active" />`
      : html`<${Status} is="failed" />`;

const COLUMNS: Column<Schedule>[] = [
  { title: "Schedule", isLong: true, cell: ({ key }) => html`<a href=${linkTo("schedules", [key])}>${key}</a>` },
  { title: "State", cell: stateOf },
  { title: "When", cell: (schedule) => html`<code>${rhythmOf(schedule)}</code>` },
  {
    title: "Sends",
    isLong: true,
    cell: ({ notification }) => `${notification.channel}: ${titleOf(notification.content ?? {})}`,
  },
  { title: "Next", isNumber: true, cell: ({ nextAt }) => html`<${When} at=${nextAt} />` },
];

function One({ name }: { name: string }): VNode {
  const path = `/v1/schedules/${named(name)}`;
  const schedule = useLive(path, (signal) => get<Schedule>(path, signal), EVERY_MS);
  const state = schedule.value?.paused;
  const next = useLive(`${path} ${state}`, (signal) =>
    get<{ data: string[] }>(`${path}/next?count=${INSTANTS}`, signal),
  );
  const runs = useLive(`${path}/runs`, (signal) => get<Page<Run>>(`${path}/runs?limit=20`, signal), EVERY_MS);
  return html`<p><a href=${linkTo("schedules")}>Schedules and reminders</a></p>
    <${Read} of=${schedule}>${(one: Schedule) => html`
      <div class="heading"><h1>${name}</h1>${stateOf(one)}<${Actions} schedule=${one} path=${path} live=${schedule} /></div>
      <${Card}><${Facts} of=${[
        ["When", html`<code>${rhythmOf(one)}</code>`],
        ["Sends", `${one.notification.channel}: ${titleOf(one.notification.content ?? {})}`],
        one.until !== undefined && ["Until", exact(one.until)],
        one.error !== undefined && ["Last error", one.error],
      ]} /><//>`}<//>
    <div class="columns">
      <${Card} title="The next ten times"><${Read} of=${next}>${({ data }: { data: string[] }) =>
        data.length === 0
          ? html`<${Empty} title="None">It is paused, or has come to its end.<//>`
          : html`<ol class="plain-list">${data.map((at) => html`<li>${exact(at)} <span class="soft">(<${When} at=${at} />)</span></li>`)}</ol>`}<//><//>
      <${Card} title="What became of its ticks"><${Read} of=${runs}>${(page: Page<Run>) =>
        page.data.length === 0
          ? html`<${Empty} title="It has not fired yet" />`
          : html`<${Table} label="Runs" items=${page.data} columns=${RUNS} keyOf=${(run: Run) => run.tick} />`}<//><//>
    </div>`;
}

const RUNS: Column<Run>[] = [
  { title: "Tick", cell: ({ tick }) => html`<${When} at=${tick} />` },
  { title: "Outcome", cell: ({ outcome }) => html`<${Status} is=${outcome} />` },
  {
    title: "Sent",
    isLong: true,
    cell: ({ notificationIds: [id, ...more], error }) =>
      id === undefined
        ? (error ?? "–")
        : html`<a href=${linkTo("messages", [id])}>${id.slice(0, 13)}…</a>${more.length > 0 && ` and ${more.length} more`}`,
  },
];

function Actions({ schedule, path, live }: { schedule: Schedule; path: string; live: Live<Schedule> }): VNode | null {
  if (!useMay("send")) return null;
  const { key, paused } = schedule;
  const pausing = () =>
    confirm({
      title: paused ? "Go on with it?" : "Pause it?",
      text: paused
        ? `1 schedule, ${key}, fires again from now on.`
        : `1 schedule, ${key}, fires no more until it is resumed. What it has sent goes on.`,
      verb: paused ? "Resume" : "Pause",
      act: async () => {
        await post(`${path}/${paused ? "resume" : "pause"}`);
        live.reload();
        return paused ? "1 schedule goes on" : "1 schedule is paused";
      },
    });
  const remove = () =>
    confirm({
      title: "End it?",
      text: `1 schedule, ${key}, is ended and its runs are forgotten. What it sent stays in the record.`,
      verb: "End the schedule",
      isDangerous: true,
      act: async () => {
        await ask("DELETE", path);
        go(linkTo("schedules"));
        return "1 schedule was ended";
      },
    });
  return html`<div class="actions"><button type="button" onClick=${pausing}>${paused ? "Resume" : "Pause"}</button>
    <button type="button" onClick=${remove}>End</button></div>`;
}
