// Sources and sinks: listed, paused, resumed, and a sink sent back to an instant. They are the deployment's: only those who run it have to do with them.
//
// What they are is in the configuration, how they stand in the database, and neither need know of the other: one that nobody has run yet has no row,
// and one that was taken out of the configuration still has its own.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { CONNECTOR_KINDS, type ConnectorKind, type ConnectorState, connectorState } from "#domain/connector.ts";
import { comparePositions, type Position, writtenPosition } from "#domain/fact.ts";
import { Problem } from "#domain/problems.ts";
import { findFeedSince } from "#record/feed-places.ts";
import { endFollower, findFollower, moveFollower, readFollower } from "#record/followers.ts";
import { readSinkLags, type SinkLag } from "#record/sink-lag.ts";
import { followerOf } from "#steps/brokers/feed-sink.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import {
  type ConnectorOf,
  type ConnectorRow,
  deleteConnector,
  ensureConnector,
  type ListedConnector,
  listConnectors,
  listOffsets,
  lockConnector,
  type SourceOffset,
  setConnectorPause,
} from "#store/connectors.ts";
import { mustOperate } from "./keys.ts";

/** What the configuration of this process names. */
export type Configured = { readonly [name: string]: { type: string } };
export type ConnectorWorld = { pool: pg.Pool; configured: { [kind in ConnectorKind]: Configured } };

export type Connector = ListedConnector & { isConfigured: boolean; state: ConnectorState };
export type ListedSink = Connector & { lag: SinkLag | undefined };
export type ListedSource = Connector & { offsets: SourceOffset[] };

/** `isMoved`: it was further than that. */
export type SentBack = { next: Position; isMoved: boolean };

type Reading = { db: Queryable; configured: ConnectorWorld["configured"] };

export async function listSinks({ db, configured }: Reading): Promise<ListedSink[]> {
  const lags = await readSinkLags(db);
  const sinks = known("sink", configured.sink, await listConnectors(db, "sink"));
  return sinks.map((sink) => ({ ...sink, lag: lags.find((lag) => lag.sink === sink.name) }));
}

export async function listSources({ db, configured }: Reading): Promise<ListedSource[]> {
  const offsets = await listOffsets(db);
  const sources = known("source", configured.source, await listConnectors(db, "source"));
  return sources.map((source) => ({ ...source, offsets: offsets.filter((one) => one.source === source.name) }));
}

/** In short, of those that somebody means to run: what is configured here, and what is run elsewhere. */
export async function listStandings({ db, configured }: Reading): Promise<(ConnectorOf & { state: ConnectorState })[]> {
  const rows = await listConnectors(db);
  return CONNECTOR_KINDS.flatMap((kind) =>
    known(
      kind,
      configured[kind],
      rows.filter((row) => row.kind === kind),
    ),
  )
    .filter(({ isConfigured, isRun }) => isConfigured || isRun)
    .map(({ kind, name, state }) => ({ kind, name, state }));
}

/** What is configured, and what has a row, by name. */
function known(kind: ConnectorKind, configured: Configured, rows: readonly ListedConnector[]): Connector[] {
  const listed = rows.map((row) => ({
    ...row,
    isConfigured: Object.hasOwn(configured, row.name),
    state: connectorState(row),
  }));
  const fresh = Object.entries(configured)
    .filter(([name]) => !rows.some((row) => row.name === name))
    .map(([name, { type }]) => ({ ...NEVER_RUN, kind, name, type, isConfigured: true, state: "idle" as const }));
  return [...listed, ...fresh].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const NEVER_RUN = {
  carried: 0,
  refused: 0,
  movedAt: null,
  error: null,
  failedAt: null,
  pausedAt: null,
  pausedBy: null,
  reason: null,
  isRun: false,
};

/** Pausing again changes the reason. */
export const pauseConnector = (
  world: ConnectorWorld,
  actor: KeyActor,
  which: ConnectorOf,
  reason: string,
): Promise<undefined | Problem> => changePause(world, actor, which, { reason, by: actor.keyId });

/** What is not paused stays so. */
export const resumeConnector = (
  world: ConnectorWorld,
  actor: KeyActor,
  which: ConnectorOf,
): Promise<undefined | Problem> => changePause(world, actor, which, { reason: null, by: null });

const changePause = (
  world: ConnectorWorld,
  actor: KeyActor,
  which: ConnectorOf,
  said: { reason: string | null; by: string | null },
): Promise<undefined | Problem> =>
  inTransaction(world.pool, async (tx) => {
    const found = await take(tx, world, actor, which);
    if (found instanceof Problem) return found;
    if (found.reason === null && said.reason === null) return undefined;
    await setConnectorPause(tx, which, said);
    await writeAudit(tx, actor, {
      action: said.reason === null ? `${which.kind}.resume` : `${which.kind}.pause`,
      object: which,
      before: { reason: found.reason },
      after: { reason: said.reason },
    });
    return undefined;
  });

/**
 * A sink is told again what happened since then, whether it had it or not. It is only ever sent back: what it has not had yet comes anyway, and nothing is
 * left out. Whoever feeds it notices, as it reads the position for every page.
 */
export const replaySink = (
  world: ConnectorWorld,
  actor: KeyActor,
  name: string,
  since: Date,
): Promise<SentBack | Problem> =>
  inTransaction(world.pool, async (tx) => {
    const which = { kind: "sink", name } as const;
    const follower = followerOf(name);
    const allowed = mustOperate(actor);
    if (allowed instanceof Problem) return allowed;
    // Locked before its row, as whoever feeds it does; one that is neither configured nor ever ran is followed by nobody.
    if (!(Object.hasOwn(world.configured.sink, name) || (await findFollower(tx, [follower])))) return noSuch(which);
    const to = await findFeedSince(tx, since);
    if ("kind" in to) {
      const detail = "what happened then is no longer kept, or was before another server took over";
      return new Problem("RESET", detail, { next: writtenPosition(to.next) });
    }
    const from = await readFollower(tx, follower);
    if (comparePositions(to, from) >= 0) return { next: from, isMoved: false };
    await moveFollower(tx, follower, to);
    await writeAudit(tx, actor, {
      action: "sink.replay",
      object: which,
      before: { position: writtenPosition(from) },
      after: { position: writtenPosition(to), since },
    });
    return { next: to, isMoved: true };
  });

/** What is left of a sink that was taken out of the configuration. With the same name it begins anew, with the oldest that the feed has. */
export const forgetSink = (world: ConnectorWorld, actor: KeyActor, name: string): Promise<undefined | Problem> =>
  inTransaction(world.pool, async (tx) => {
    const which = { kind: "sink", name } as const;
    const allowed = mustOperate(actor);
    if (allowed instanceof Problem) return allowed;
    if (Object.hasOwn(world.configured.sink, name)) return new Problem("SINK_IN_USE", `${name} is configured here`);
    const found = (await listConnectors(tx, "sink")).find((sink) => sink.name === name);
    if (!found) return noSuch(which);
    if (found.isRun) return new Problem("SINK_IN_USE", `a process runs ${name}`);
    await endFollower(tx, followerOf(name));
    await deleteConnector(tx, which);
    const { type, carried, refused } = found;
    await writeAudit(tx, actor, { action: "sink.forget", object: which, before: { type, carried, refused } });
    return undefined;
  });

/** Its row, locked; or why this actor cannot have it. */
async function take(
  tx: Queryable,
  { configured }: ConnectorWorld,
  actor: KeyActor,
  which: ConnectorOf,
): Promise<ConnectorRow | Problem> {
  const allowed = mustOperate(actor);
  if (allowed instanceof Problem) return allowed;
  const { kind, name } = which;
  const settings = Object.hasOwn(configured[kind], name) ? configured[kind][name] : undefined;
  if (settings) await ensureConnector(tx, which, settings.type);
  return (await lockConnector(tx, which)) ?? noSuch(which);
}

const noSuch = ({ kind, name }: ConnectorOf) => new Problem("NOT_FOUND", `there is no ${kind} ${name}`);
