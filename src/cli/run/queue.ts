// carillon queue: where ready work waits, and the way from one engine to another.

import { setTimeout as sleep } from "node:timers/promises";
import { CarillonError, type Client } from "#client/client.ts";
import { EXIT, type Run, type World } from "../command.ts";
import { columns, said } from "./lines.ts";

type Migration = Awaited<ReturnType<Client["migration"]["get"]>>;

const LOOK_MS = 500;

export const showQueue: Run = async (_call, world) => {
  const client = await world.client();
  const queue = await client.queue();
  // The last one, too: what its audit found.
  const last = queue.migration ?? (await client.migration.get().catch(noneYet));
  const { engine, engines, depth, processing, scheduled } = queue;
  const lanes = Object.entries(depth).map(([lane, count]) => columns([lane, `${count} waiting`]));
  const places = engines.map(({ name, waiting, isEstimate, current }) =>
    columns([name, `${waiting}${isEstimate ? "+" : ""} waiting there`, current ? "what is accepted goes there" : ""]),
  );
  const text = [
    `engine ${engine}`,
    ...places,
    ...lanes,
    columns(["processing", String(processing)]),
    columns(["scheduled", String(scheduled)]),
  ];
  return { json: queue, text: last ? [...text, standingOf(last)] : text };
};

/** There was none yet, or it is not for this key. */
function noneYet(error: unknown): undefined {
  if (!(error instanceof CarillonError)) throw error;
}

export const migrateQueue: Run = async ({ options: { to = "", strategy }, flags }, world) => {
  const client = await world.client();
  const order = { to: to as Migration["to"], ...(strategy && { strategy: strategy as Migration["strategy"] }) };
  const begun = await client.migration.begin(order);
  if (flags.has("no-wait")) return said(standingOf(begun), begun);
  const ended = await follow(client, world, begun);
  const isWell = ended.state === "done" && ended.audit?.state !== "unbalanced";
  return said(standingOf(ended), ended, isWell ? EXIT.done : EXIT.failed);
};

export const abortMigration: Run = async ({ flags }, world) => {
  const client = await world.client();
  const begun = await client.migration.abort();
  const ended = flags.has("no-wait") ? begun : await follow(client, world, begun);
  return said(standingOf(ended), ended, ended.audit?.state === "unbalanced" ? EXIT.failed : EXIT.done);
};

/** Whoever watches no more leaves it under way: `carillon queue show` tells how far it has come. */
async function follow(client: Client, world: World, begun: Migration): Promise<Migration> {
  const progress = world.progress(`${begun.from} to ${begun.to}`, String);
  let move = begun;
  // Until it was audited, too.
  while (move.endedAt === undefined || move.audit?.state === "looking") {
    const most = Math.max(move.waiting, move.left, 1);
    progress.at(most - move.left, most);
    await sleep(LOOK_MS);
    move = await client.migration.get();
  }
  progress.end();
  return move;
}

const standingOf = (move: Migration): string => `${comeOf(move)}${move.audit ? `; ${foundOf(move.audit)}` : ""}`;

function foundOf({ state, isWhole, engines, amiss, examples }: NonNullable<Migration["audit"]>): string {
  const sums = engines.map(
    ({ engine, accepted, ended, waiting }) => `${engine}: ${accepted} accepted, ${ended} ended, ${waiting} waiting`,
  );
  const found = {
    looking: "being audited",
    balanced: `audited${isWhole ? "" : ", as far as it could be looked at"}, it balances`,
    unbalanced: `it does NOT balance: ${amiss} are amiss, for example ${examples.slice(0, 5).join(", ")}`,
  };
  return [found[state], ...sums].join("; ");
}

function comeOf({ from, to, strategy, state, waiting, moved, left }: Migration): string {
  switch (state) {
    case "moving":
      return `from ${from} to ${to}, ${strategy}: ${left} are left of ${waiting}`;
    case "aborting":
      return `back from ${to} to ${from}: ${left} are left`;
    case "done":
      return `what is ready waits in ${to}: of ${waiting} in ${from}, ${moved} were moved and workers took the others`;
    case "aborted":
      return `what is ready waits in ${from}, as before`;
  }
}
