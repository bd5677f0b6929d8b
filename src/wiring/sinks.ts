// Sinks, wired: each has a loop of its own, so that one that is away keeps no other waiting.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { startSink } from "#roles/sink.ts";
import { openSink } from "#sinks/open.ts";
import { SinkFeeder } from "#steps/brokers/feed-sink.ts";
import { ensureConnector, noteConnectorFailure } from "#store/connectors.ts";
import { ConnectorFacts } from "#telemetry/connector-facts.ts";
import { whyOf } from "#wire/why.ts";
import type { Base } from "./base.ts";
import type { Stop } from "./undo.ts";

/** Throws where a package is missing that one of them needs. Their connections are closed by `undo`, after the loops have stopped. */
export async function openSinks({ config, database, log, figures }: Base, loops: Stop[], undo: Stop[]): Promise<void> {
  const pool = database.own;
  const holder = `${hostname()}-${process.pid}-${randomUUID()}`;
  for (const [name, settings] of Object.entries(config.sinks)) {
    const which = { kind: "sink", name } as const;
    const facts = new ConnectorFacts(log, figures.connectors, which);
    const sink = await openSink(settings, name);
    undo.push(() => sink.close());
    await ensureConnector(pool, which, settings.type);
    const feeder = new SinkFeeder({
      pool,
      name,
      sink,
      types: settings.types,
      holder,
      onMissed: (reason) => facts.missed(reason),
    });
    const running = startSink({
      feeder,
      onCarried({ carried, refused }) {
        facts.carried(carried, refused.length);
        for (const { told, error } of refused) facts.refused(told.body.id, error);
      },
      onFailure(error) {
        facts.failed(error);
        // That it is written does not matter as much as that it is tried again.
        noteConnectorFailure(pool, which, whyOf(error)).catch(() => undefined);
      },
      random: Math.random,
    });
    loops.push(running.stop);
  }
}
