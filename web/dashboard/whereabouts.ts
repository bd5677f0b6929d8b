// Where ready work waits, and moving it from one engine to another.

import { useState } from "preact/hooks";
import { ask, get, post, Refused } from "./api.ts";
import { confirm } from "./confirm.ts";
import type { Worker } from "./house.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Card, Facts, Pick, Read, When } from "./parts.ts";
import { useOperates } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { count, many } from "./words.ts";

type Engine = { name: string; waiting: number; isEstimate: boolean; current: boolean };
type Move = {
  from: string;
  to: string;
  strategy: string;
  state: string;
  waiting: number;
  moved: number;
  left: number;
  startedAt: string;
  endedAt?: string;
};
type Queue = { engine: string; engines: Engine[]; migration?: Move };

const EVERY_MS = 5_000;
const SOON_MS = 1_500;
const PATH = "/v1/queue/migration";
const STRATEGIES = { "live-forward": "at once", "drain-first": "once it is empty" };

export function Whereabouts({ workers }: { workers: Worker[] }): VNode {
  const operates = useOperates();
  const queue = useLive("whereabouts", (signal) => get<Queue>("/v1/queue", signal), EVERY_MS);
  const now = queue.value?.migration;
  const isMoving = now !== undefined;
  useLive(isMoving ? "moving" : "", async () => isMoving && queue.reload(), isMoving ? SOON_MS : undefined);
  const last = useLive(operates ? `move ${isMoving}` : "", (signal) => (operates ? lastMove(signal) : nothing()));
  const move = now ?? last.value;
  return html`<${Card} title="Where ready work waits"><${Read} of=${queue}>${({ engine, engines }: Queue) =>
    operates
      ? html`<${Table} label="Engines" items=${engines} columns=${columnsFor(workers)} keyOf=${({ name }: Engine) => name} />
        ${!isMoving && html`<${Start} from=${engine} waiting=${waitingIn(engines, engine)} targets=${targetsOf(workers, engine)} reload=${queue.reload} />`}
        ${move && html`<${Progress} move=${move} reload=${queue.reload} />`}`
      : html`<p>In <strong>${engine}</strong>.</p>`}<//><//>`;
}

const nothing = async (): Promise<undefined> => undefined;
const waitingWords = ({ waiting, isEstimate }: Pick<Engine, "waiting" | "isEstimate">): string =>
  `${count(waiting)}${isEstimate ? "+" : ""}`;
/** "1 notification waits in postgres" */
function waitingIn(engines: Engine[], name: string): string {
  const here = engines.find((engine) => engine.name === name) ?? { waiting: 0, isEstimate: false };
  return `${waitingWords(here)} ${here.waiting === 1 ? "notification waits" : "notifications wait"} in ${name}`;
}

async function lastMove(signal: AbortSignal): Promise<Move | undefined> {
  try {
    return await get<Move>(PATH, signal);
  } catch (error) {
    // Nothing was ever moved.
    if (error instanceof Refused && error.status === 404) return undefined;
    throw error;
  }
}

/** Those that take notifications at all. */
const takersOf = (workers: Worker[]): Worker[] =>
  workers.filter(({ alive, takes }) => alive && takes.lanes?.length !== 0);
const takesFrom = ({ engines }: Worker, name: string): boolean => name === "postgres" || engines.includes(name);

/** Where every worker can take from: elsewhere the service would refuse to move. */
function targetsOf(workers: Worker[], current: string): string[] {
  const takers = takersOf(workers);
  const known = ["postgres", ...new Set(takers.flatMap(({ engines }) => engines))];
  return known.filter((name) => name !== current && takers.every((worker) => takesFrom(worker, name)));
}

const columnsFor = (workers: Worker[]): Column<Engine>[] => [
  { title: "Engine", cell: ({ name }) => name },
  {
    title: "State",
    cell: ({ current }) =>
      current ? html`<${Status} is="in use" tone="good" />` : html`<${Status} is="not in use" />`,
  },
  { title: "Waiting", isNumber: true, cell: (engine) => waitingWords(engine) },
  {
    title: "Workers that take from it",
    isNumber: true,
    cell: ({ name }) => {
      const takers = takersOf(workers);
      return `${count(takers.filter((worker) => takesFrom(worker, name)).length)} of ${count(takers.length)}`;
    },
  },
];

type StartProps = { from: string; waiting: string; targets: string[]; reload: () => void };

function Start({ from, waiting, targets, reload }: StartProps): VNode {
  const [target, setTarget] = useState<string>();
  const [strategy, setStrategy] = useState("live-forward");
  const to = target !== undefined && targets.includes(target) ? target : targets[0];
  if (to === undefined)
    return html`<p class="soft card-actions">There is nowhere else to move it: every worker needs the settings of another engine first.</p>`;
  const means =
    strategy === "drain-first"
      ? `What is accepted waits in PostgreSQL until workers have emptied ${from}, and goes to ${to} then.`
      : `What is accepted goes to ${to} from now on. What waits in ${from} is sent from there, or taken over.`;
  const move = (event: Event) => {
    event.preventDefault();
    confirm({
      title: `Move ready work to ${to}?`,
      text: `${waiting}. ${means} Nothing stops meanwhile, and nothing is lost.`,
      verb: "Move",
      act: async () => {
        await post(PATH, { to, strategy });
        reload();
        return `Ready work is moved to ${to}`;
      },
    });
  };
  return html`<form class="filters card-actions" onSubmit=${move}>
    <${Pick} label="Move it to" value=${to} options=${targets.map((name) => [name, name])} onPick=${setTarget} />
    <${Pick} label="New work goes there" value=${strategy} options=${Object.entries(STRATEGIES)} onPick=${setStrategy} />
    <button>Move…</button></form>`;
}

function Progress({ move, reload }: { move: Move; reload: () => void }): VNode {
  const { from, to, strategy, state, waiting, moved, left, startedAt, endedAt } = move;
  const abort = () =>
    confirm({
      title: `Go back to ${from}?`,
      text: `What is accepted goes to ${from} again, and so does what was moved and has not been sent. ${many(left, "notification")} of ${count(waiting)} ${left === 1 ? "is" : "are"} still there. Nothing is lost.`,
      verb: "Abort the move",
      isDangerous: true,
      act: async () => {
        await ask("DELETE", PATH);
        reload();
        return `Ready work goes back to ${from}`;
      },
    });
  const isMoving = state === "moving";
  return html`<div class="heading part"><h3>From ${from} to ${to}, ${strategy}</h3><${Status} is=${state} />
      ${isMoving && html`<button type="button" class="small" onClick=${abort}>Abort<span class="hidden"> the move</span></button>`}</div>
    ${isMoving && html`<progress max=${Math.max(waiting, 1)} value=${Math.max(waiting - left, 0)} aria-label="Progress of the move"></progress>`}
    <${Facts} of=${[
      ["Waited when it began", count(waiting)],
      ["Taken over", count(moved)],
      endedAt === undefined && ["Still to go", count(left)],
      ["Began", html`<${When} at=${startedAt} />`],
      endedAt !== undefined && ["Ended", html`<${When} at=${endedAt} />`],
    ]} />`;
}
