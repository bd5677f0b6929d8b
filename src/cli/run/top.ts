// carillon top: how it goes, on a screen that is drawn again and again until q.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "#client/client.ts";
import { EXIT, type Run, type World } from "../command.ts";
import { clean, paintOf } from "../paint.ts";
import { stopSignal } from "../stopping.ts";
import { frameOf, type Snapshot } from "./frame.ts";

const ESC = String.fromCharCode(27);
/** A page of its own, so that what was there before is there afterwards; without a cursor. */
const [OPEN, CLOSE] = [`${ESC}[?1049h${ESC}[?25l`, `${ESC}[?25h${ESC}[?1049l`];
const [HOME, REST_OF_LINE, REST_OF_PAGE] = [`${ESC}[H`, `${ESC}[K`, `${ESC}[J`];
const QUIT = new Set(["q", "Q", ESC, String.fromCharCode(3)]);
const EVERY_S = 2;

export const top: Run = async ({ options, flags }, world) => {
  const client = await world.client();
  const everyMs = Number(options.every ?? EVERY_S) * 1_000;
  if (flags.has("once") || (!world.screen.isTerminal && !world.isJson)) {
    const before = await look(client);
    await sleep(1_000);
    return shown(world, await look(client), before);
  }
  const quit = new AbortController();
  const { stopping } = stopSignal();
  const over = AbortSignal.any([quit.signal, stopping]);
  if (world.isJson) await follow(world, client, everyMs, over, (now) => world.print(JSON.stringify(documentOf(now))));
  else await onScreen(world, client, everyMs, over, () => quit.abort());
  return EXIT.done;
};

async function onScreen(world: World, client: Client, everyMs: number, over: AbortSignal, quit: () => void) {
  const { screen } = world;
  const deaf = screen.onKey((key) => QUIT.has(key) && quit());
  screen.write(OPEN);
  try {
    await follow(world, client, everyMs, over, async (now, before) => screen.write(await pageOf(world, now, before)));
  } finally {
    deaf();
    screen.write(CLOSE);
  }
}

/** A service that is away for a while is waited for: that is when one looks. */
async function follow(
  world: World,
  client: Client,
  everyMs: number,
  over: AbortSignal,
  draw: (now: Snapshot, before: Snapshot | undefined) => unknown,
): Promise<void> {
  let before: Snapshot | undefined;
  while (!over.aborted) {
    const now = await look(client, over).catch((error: unknown) => {
      if (!before || over.aborted) return { error };
      if (!world.isJson) world.screen.write(`${HOME}${clean(`no answer: ${error}`, false)}${REST_OF_LINE}`);
      return undefined;
    });
    if (over.aborted) return;
    if (now && "error" in now) throw now.error;
    if (now) {
      await draw(now, before);
      before = now;
    }
    await sleep(everyMs, undefined, { signal: over }).catch(() => {});
  }
}

async function look(client: Client, signal?: AbortSignal): Promise<Snapshot> {
  const options = signal ? { signal } : {};
  const [queue, ledger, workers, providers] = await Promise.all([
    client.queue(options),
    client.ledger(options),
    client.workers(options),
    client.providers(options),
  ]);
  return { atMs: performance.now(), queue, ledger, workers: workers.data, providers: providers.data };
}

const documentOf = ({ atMs: _, ...snapshot }: Snapshot) => ({ at: new Date().toISOString(), ...snapshot });

const titleOf = async (world: World): Promise<string> =>
  `carillon  ${new URL(await world.url()).origin}  ${new Date().toISOString().slice(11, 19)}`;

async function shown(world: World, now: Snapshot, before: Snapshot) {
  const size = { columns: world.screen.isTerminal ? world.screen.columns() : 200, rows: Number.POSITIVE_INFINITY };
  return { json: documentOf(now), text: frameOf(await titleOf(world), now, before, size, paintOf(world.screen)) };
}

async function pageOf(world: World, now: Snapshot, before: Snapshot | undefined): Promise<string> {
  const { screen } = world;
  const size = { columns: screen.columns(), rows: screen.rows() };
  const lines = frameOf(`${await titleOf(world)}  q quits`, now, before, size, paintOf(screen));
  return HOME + lines.map((line) => line + REST_OF_LINE).join("\n") + REST_OF_PAGE;
}
