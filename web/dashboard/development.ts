// Time travel and faults: there where the service answers for its clock, which it does in development only.

import { ask, get, post } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { CHANNELS } from "./messages.ts";
import { Card, Read } from "./parts.ts";
import { useMay, useWho } from "./session.ts";
import { type Column, Table } from "./table.ts";
import { duration, exact, many } from "./words.ts";

const CLOCK = "/v1/dev/clock";
const FAULTS = "/v1/dev/faults";
const LOOK_MS = 5_000;
/** Reading both clocks takes a moment. */
const SAME_MS = 1_000;
const STEPS: { [name: string]: string } = { "an hour": "PT1H", "a day": "P1D", "a week": "P7D", "a month": "P1M" };
const KINDS = ["429", "503", "refused", "dead-recipient", "hang", "lost-answer"];

type Clock = { now: string; movedMs: number };
type Fault = { id: string; channel?: string; provider?: string; fault: string; next: number; left: number };

export function Development(): VNode | null {
  const clock = useLive(CLOCK, (signal) => get<Clock>(CLOCK, signal));
  const { value } = clock;
  return value === undefined
    ? null
    : html`<div class="columns development"><${Travel} clock=${value} reload=${clock.reload} /><${Faults} /></div>`;
}

function Travel({ clock: { now, movedMs }, reload }: { clock: Clock; reload: () => void }): VNode {
  // It is everybody's clock.
  const mayMove = useMay("admin") && useWho()?.tenant === "default";
  const isMoved = movedMs >= SAME_MS;
  const move = (event: Event) => {
    event.preventDefault();
    const by = String(new FormData(event.target as HTMLFormElement).get("by"));
    confirm({
      title: `Move the clock on by ${by}?`,
      text: "1 clock, that of all tenants and processes. What is due by then is sent, and what is older than the retention goes.",
      verb: "Move it",
      async act() {
        await post(CLOCK, { by: STEPS[by] });
        reload();
        return `The clock was moved on by ${by}.`;
      },
    });
  };
  const reset = () =>
    confirm({
      title: "Set the clock back?",
      text: "1 clock shows the true time again. What was made meanwhile keeps its later times, and what was planned waits for its time.",
      verb: "Set it back",
      async act() {
        await ask("DELETE", CLOCK);
        reload();
        return "The clock was set back.";
      },
    });
  return html`<${Card} title="Time travel">
    <p>${isMoved ? `The clock is ${duration(movedMs)} ahead: ${exact(now)}.` : "The clock shows the true time."}</p>
    ${
      mayMove &&
      html`<form class="filters card-actions" onSubmit=${move}>
      <label class="field"><span>Move it on by</span><select name="by">${Object.keys(STEPS).map((name) => html`<option>${name}</option>`)}</select></label>
      <button>Move the clock</button>
      ${isMoved && html`<button type="button" onClick=${reset}>Set it back</button>`}</form>`
    }<//>`;
}

const COLUMNS: Column<Fault>[] = [
  { title: "Fault", cell: ({ fault }) => html`<code>${fault}</code>` },
  { title: "Of", isLong: true, cell: ({ channel, provider }) => [channel, provider].filter(Boolean).join(" by ") },
  { title: "Left", isNumber: true, cell: ({ left, next }) => `${left} of ${next}` },
];

function Faults(): VNode {
  const faults = useLive(FAULTS, (signal) => get<{ data: Fault[] }>(FAULTS, signal), LOOK_MS);
  const maySend = useMay("send");
  const inject = (event: Event) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    const [fault, channel] = [String(fields.get("fault")), String(fields.get("channel"))];
    const next = Number(fields.get("next"));
    confirm({
      title: "Make sends fail?",
      text: `The next ${many(next, "send")} of this tenant by ${channel} that the provider dev carries: ${fault}.`,
      verb: "Make them fail",
      async act() {
        await post(FAULTS, { fault, next, channel });
        faults.reload();
        return `The next ${next === 1 ? "send fails" : `${many(next, "send")} fail`}.`;
      },
    });
  };
  const forget = (data: Fault[]) =>
    confirm({
      title: "Forget all faults?",
      text: `${many(data.length, "fault")}, used up or not.`,
      verb: "Forget them",
      async act() {
        await ask("DELETE", FAULTS);
        faults.reload();
        return "Sends go well again.";
      },
    });
  return html`<${Card} title="Faults">
    ${
      maySend &&
      html`<form class="filters" onSubmit=${inject}>
      <label class="field"><span>Fault</span><select name="fault">${KINDS.map((kind) => html`<option>${kind}</option>`)}</select></label>
      <label class="field"><span>In channel</span><select name="channel">${CHANNELS.map((channel) => html`<option>${channel}</option>`)}</select></label>
      <label class="field"><span>Sends</span><input name="next" type="number" min="1" max="1000" required defaultValue="1" /></label>
      <button>Make them fail</button></form>`
    }
    <${Read} of=${faults}>${({ data }: { data: Fault[] }) =>
      data.length === 0
        ? html`<p class="soft">All sends go well.</p>`
        : html`<${Table} label="Faults" items=${data} columns=${COLUMNS} keyOf=${(one: Fault) => one.id} />
          ${maySend && html`<p class="card-actions"><button type="button" onClick=${() => forget(data)}>Forget all faults</button></p>`}`}<//><//>`;
}
