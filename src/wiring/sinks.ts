// Sinks, wired: each has a loop of its own, so that one that is away keeps no other waiting.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type RunningSink, startSink } from "#roles/sink.ts";
import { openSink } from "#sinks/open.ts";
import { SinkFeeder, type SinkWorld } from "#steps/brokers/feed-sink.ts";
import { ensureConnector, noteConnectorFailure } from "#store/connectors.ts";
import { ConnectorFacts } from "#telemetry/connector-facts.ts";
import { whyOf } from "#wire/why.ts";
import type { Base } from "./base.ts";
import type { Stop } from "./undo.ts";

/** Throws where a package is missing that one of them needs. Their connections are closed by `undo`, after the loops have stopped. */
export async function openSinks(base: Base, loops: Stop[], undo: Stop[]): Promise<void> {
  const { config, database, log, figures, monotonic } = base;
  const pool = database.own;
  const holder = `${hostname()}-${process.pid}-${randomUUID()}`;
  for (const [name, settings] of Object.entries(config.sinks)) {
    const facts = new ConnectorFacts(log, figures.connectors, { kind: "sink", name });
    const sink = await openSink(settings, name);
    undo.push(() => sink.close());
    await ensureConnector(pool, { kind: "sink", name }, settings.type);
    loops.push(feed({ pool, name, sink, types: settings.types, holder, monotonic }, facts).stop);
  }
}

/** What becomes of it is counted, logged, and kept for those who ask. */
export function feed(world: Omit<SinkWorld, "onMissed">, facts: ConnectorFacts): RunningSink {
  const { pool, name } = world;
  const which = { kind: "sink", name } as const;
  return startSink({
    feeder: new SinkFeeder({ ...world, onMissed: (reason) => facts.missed(reason) }),
    onCarried({ carried, refused }) {
      facts.carried(carried, refused.length);
      for (const { told, error } of refused) facts.refused(told.body.id, error);
    },
    // That it is written does not matter as much as that it is tried again.
    async onFailure(error) {
      facts.failed(error);
      await noteConnectorFailure(pool, which, whyOf(error)).catch(() => undefined);
    },
    onGoing: () => noteConnectorFailure(pool, which, undefined),
    random: Math.random,
  });
}
