// What a source is kept with, for tests: a keeper on a database, and messages as they would come.

import type pg from "pg";
import { createIds } from "#domain/ids.ts";
import type { Batch, Message } from "#sources/source.ts";
import { BatchKeeper, type KeepWorld } from "#steps/brokers/keep-batch.ts";
import { ensureConnector } from "#store/connectors.ts";

export type Given = { value?: unknown; headers?: { [name: string]: string } };

/** A value that is no text and no bytes is written as JSON; null is none. */
export function messageOf(offset: number, { value = request(offset), headers = {} }: Given = {}): Message {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
  return {
    offset,
    headers: new Map(Object.entries(headers)),
    headerBytes: Object.entries(headers).flat().join("").length,
    value: value === null ? undefined : bytes,
  };
}

export const request = (n: number | string, more: object = {}) => ({
  channel: "console",
  content: { body: `number ${n}` },
  ...more,
});

export const batchOf = (messages: readonly Message[], more: Partial<Batch> = {}): Batch => ({
  topic: "requests",
  partition: 0,
  from: messages[0]?.offset ?? 0,
  next: (messages.at(-1)?.offset ?? -1) + 1,
  messages,
  ...more,
});

export async function keeperOn(pool: pg.Pool, source: string, more: Partial<KeepWorld> = {}): Promise<BatchKeeper> {
  await ensureConnector(pool, { kind: "source", name: source }, "scripted");
  return new BatchKeeper({
    pool,
    source,
    settings: { tenant: "default" },
    numbering: { newId: createIds(), now: () => new Date() },
    engines: [],
    room: async () => {},
    onKept: () => {},
    ...more,
  });
}

export const keepNow = async (keeper: BatchKeeper, batch: Batch) => (await keeper.read(batch))();

/** The bodies of what was accepted, in the order that it was. */
export async function acceptedBodies(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ body: string }>(
    "select request->'content'->>'body' as body from carillon.notifications order by id",
  );
  return rows.map(({ body }) => body);
}
