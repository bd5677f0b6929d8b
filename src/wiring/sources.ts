// Sources, wired: what they read is accepted here, and wakes whoever can go on with it.

import { setTimeout as sleep } from "node:timers/promises";
import { createIds } from "#domain/ids.ts";
import { startSource } from "#roles/source.ts";
import { openSource } from "#sources/open.ts";
import type { SourceSettings } from "#sources/settings.ts";
import type { Keeping } from "#sources/source.ts";
import { BatchKeeper } from "#steps/brokers/keep-batch.ts";
import { ensureConnector, isConnectorPaused, noteConnectorFailure, touchConnector } from "#store/connectors.ts";
import { ConnectorFacts } from "#telemetry/connector-facts.ts";
import { loadKafka } from "#wire/kafka-client.ts";
import { whyOf } from "#wire/why.ts";
import type { OpenedAcceptances } from "./accept.ts";
import type { Base } from "./base.ts";
import type { Stop } from "./undo.ts";

/** So long it takes to be noticed that there is room again. */
const ROOM_MS = 50;

/** Throws where a package is missing that one of them needs. */
export async function openSources(base: Base, accepting: OpenedAcceptances, loops: Stop[]): Promise<void> {
  const { config, database } = base;
  for (const [name, settings] of Object.entries(config.sources)) {
    // Told when the process starts, also where the source is paused.
    await loadKafka(`The source ${name} (${settings.type})`);
    await ensureConnector(database.own, { kind: "source", name }, settings.type);
    const source = openOne(base, accepting, name, settings);
    loops.push(source.stop);
    base.figures.connectors.watchLag({ kind: "source", name }, source.lag);
  }
}

function openOne(base: Base, accepting: OpenedAcceptances, name: string, settings: SourceSettings) {
  const { database, log, figures } = base;
  const which = { kind: "source", name } as const;
  const facts = new ConnectorFacts(log, figures.connectors, which);
  // What was written before this process began is not known.
  let isFailing = true;
  const note = (why: string | undefined) => {
    isFailing = why !== undefined;
    // That it is written does not matter as much as that it is tried again.
    noteConnectorFailure(database.own, which, why).catch(() => undefined);
  };
  const failed = (error: unknown | undefined) => {
    if (error !== undefined) facts.failed(error);
    if (error !== undefined || isFailing) note(error === undefined ? undefined : whyOf(error));
  };
  const keeper = keeperOf(base, accepting, { name, settings, facts });
  const keeping: Keeping = {
    offsets: (topic) => keeper.offsets(topic),
    read: (batch) => keeper.read(batch),
    untold: () => keeper.untold(),
    told: (refusals) => keeper.told(refusals),
    missed: (what) => facts.missed(what),
    failed,
  };
  return startSource({
    open: () => openSource(settings, name, keeping),
    touch: () => touchConnector(database.own, which),
    isPaused: () => isConnectorPaused(database.own, which),
    onFailure: failed,
  });
}

function keeperOf(
  { config, database, clock, traces, engines }: Base,
  { acceptances, committed }: OpenedAcceptances,
  { name, settings, facts }: { name: string; settings: SourceSettings; facts: ConnectorFacts },
): BatchKeeper {
  return new BatchKeeper({
    pool: database.source,
    source: name,
    settings,
    numbering: { newId: createIds(clock.nowMs), now: clock.now, traces },
    engines: engines?.names ?? [],
    async room() {
      while (acceptances.waitingRows() >= config.acceptMaxWaiting) await sleep(ROOM_MS);
    },
    onKept({ carried, refused, ...commit }) {
      if (carried > 0) committed(commit);
      facts.carried(carried, refused.length);
      // One line for a batch, as whoever writes to the topic must not fill our log.
      const [first] = refused;
      if (first)
        facts.refused(first.place, `${first.code}${refused.length > 1 ? ` and ${refused.length - 1} more` : ""}`);
    },
  });
}
