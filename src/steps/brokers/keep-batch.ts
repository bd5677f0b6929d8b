// Keeps what a source has read: accepts what can be accepted, refuses the rest, and moves the partition's offset, in one transaction.
//
// The offset is moved only from where the reader began, and its row is held until the commit. So of two who have read the same only one keeps it, and a
// batch whose commit was not answered is either all there or not at all: what is kept says which.

import type pg from "pg";
import type { EngineName, Handoff } from "#domain/handoff.ts";
import { type Fault, Problem } from "#domain/problems.ts";
import type { Batch, Keep, Keeping, Kept, Refusal } from "#sources/source.ts";
import type { Commit } from "#steps/walk/accept.ts";
import { earliestDueMs, lanesOf, type Numbering, type Row, rowFor, storeEach } from "#steps/walk/rows.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { countCarried, keepRefusals, listUntold, markTold } from "#store/connectors.ts";
import { moveOffset, readOffsets } from "#store/source-offsets.ts";
import { findTenantIds } from "#store/tenants.ts";
import { type ReadingSettings, readMessage, type Said } from "./read-message.ts";

export type KeepWorld = {
  pool: pg.Pool;
  source: string;
  settings: ReadingSettings & { refusals?: string | undefined };
  numbering: Numbering;
  /** Those to which onKept() hands over. */
  engines: readonly EngineName[];
  /** Resolves while there is room for more. */
  room: () => Promise<void>;
  onKept: (kept: Commit & { carried: number; refused: readonly Refusal[] }) => void;
};

/** What became of a message so far. */
type Judged = { offset: number; tenant: number | undefined; row: Row | Problem };

/** After so many the others in this process get a turn: reading takes the time that their statements wait for. */
const AT_ONCE = 64;
/** Of a message with more faults these tell enough; and nobody fills our tables with faults. */
const MOST_FAULTS = 20;
const MOST_WORDS = 200;
const MOST_UNTOLD = 500;
/** Whoever refused it has told it by now, or has ended. */
const UNTOLD_SECONDS = 30;

export class BatchKeeper implements Omit<Keeping, "failed" | "missed"> {
  readonly #world: KeepWorld;
  readonly #tenants = new Map<string, number>();

  constructor(world: KeepWorld) {
    this.#world = world;
  }

  offsets(topic: string): Promise<ReadonlyMap<number, number>> {
    return readOffsets(this.#world.pool, this.#world.source, topic);
  }

  async read(batch: Batch): Promise<Keep> {
    const { settings, numbering } = this.#world;
    const now = numbering.now();
    const judged: Judged[] = [];
    const strangers: { one: Judged; said: Said }[] = [];
    let read = 0;
    for (const message of batch.messages) {
      const { offset, value } = message;
      // Without a value it says that a key is no longer there: nothing is asked for.
      if (value === undefined) continue;
      if (++read % AT_ONCE === 0) await nextTurn();
      const said = readMessage(message, value, settings);
      const one: Judged = { offset, tenant: undefined, row: UNKNOWN };
      judged.push(one);
      if (said instanceof Problem) one.row = said;
      // Nobody overtakes those that wait: ids are in the order of the messages.
      else if (strangers.length > 0 || !this.#judge(one, said, now)) strangers.push({ one, said });
    }
    await this.#learnTenants(strangers.map(({ said }) => said));
    for (const { one, said } of strangers) this.#judge(one, said, now);
    return () => this.#keep(batch, judged);
  }

  async untold(): Promise<readonly Omit<Refusal, "offset">[]> {
    const { pool } = this.#world;
    const untold = await listUntold(pool, this.#of(), { sinceSeconds: UNTOLD_SECONDS, limit: MOST_UNTOLD });
    return untold.map((one) => ({ ...one, faults: one.faults as Fault[] }));
  }

  async told(refusals: readonly Pick<Refusal, "id">[]): Promise<void> {
    await markTold(
      this.#world.pool,
      refusals.map(({ id }) => id),
    );
  }

  #of() {
    return { kind: "source", name: this.#world.source } as const;
  }

  /** Those that are there are remembered; others may be made at any time. */
  async #learnTenants(said: readonly Said[]): Promise<void> {
    const names = new Set(said.map(({ tenant }) => tenant).filter((name) => name !== undefined));
    if (names.size === 0) return;
    for (const [name, id] of await findTenantIds(this.#world.pool, [...names])) this.#tenants.set(name, id);
  }

  /** False where its tenant is not known. */
  #judge(one: Judged, { tenant: name, request }: Said, now: Date): boolean {
    one.tenant = name === undefined ? undefined : this.#tenants.get(name);
    if (one.tenant === undefined) return false;
    const row = rowFor(one.tenant, request, this.#world.numbering, now);
    one.row = row instanceof Problem ? row : lean(row);
    return true;
  }

  async #keep(batch: Batch, judged: readonly Judged[]): Promise<Kept> {
    const { pool, room, numbering, onKept } = this.#world;
    await room();
    const startedAt = performance.now();
    const rows = judged.map(({ row }) => row).filter((row): row is Row => !(row instanceof Problem));
    let refused: Refusal[] | undefined;
    let handed: Handoff[] = [];
    const store = () =>
      inTransaction(pool, async (tx) => {
        handed = [];
        const { problems, ...kept } = await this.#store(tx, batch, judged, rows, (some) => void handed.push(...some));
        refused = kept.refused;
        return problems;
      });
    const problems = await (numbering.traces ? numbering.traces.accepted(rows, store) : store());
    if (!refused)
      return { kind: "elsewhere", next: (await this.offsets(batch.topic)).get(batch.partition) ?? batch.from };
    const seconds = (performance.now() - startedAt) / 1000;
    const carried = problems.filter((problem) => problem === undefined).length;
    onKept({ rows: carried, seconds, nextDueMs: earliestDueMs(rows), lanes: lanesOf(rows), handed, carried, refused });
    return { kind: "moved", refused };
  }

  /** Nothing is refused, and nothing stored, where the offset has been moved by somebody else. */
  async #store(
    tx: Queryable,
    { topic, partition, from, next, ends }: Batch,
    judged: readonly Judged[],
    rows: readonly Row[],
    onHanded: (handed: readonly Handoff[]) => void,
  ): Promise<{ problems: (Problem | undefined)[]; refused: Refusal[] | undefined }> {
    const { source, settings, engines } = this.#world;
    if (!(await moveOffset(tx, { source, topic, partition }, { from, next, ends })))
      return { problems: [], refused: undefined };
    const problems = rows.length === 0 ? [] : await storeEach(tx, rows, { engines }, onHanded);
    const ofRows = problems.values();
    const refusals = judged.flatMap(({ offset, tenant, row }) => {
      const outcome = row instanceof Problem ? row : ofRows.next().value;
      return outcome instanceof Problem
        ? [{ offset, tenant, ...refusalOf(outcome, `${topic}/${partition}/${offset}`) }]
        : [];
    });
    const ids = await keepRefusals(tx, this.#of(), refusals, settings.refusals !== undefined);
    const refused = refusals.map((refusal, n) => ({ ...refusal, id: ids[n] as number }));
    // Last, as all partitions of the source share that row.
    if (judged.length > 0) {
      await countCarried(tx, this.#of(), { carried: judged.length - refused.length, refused: refused.length });
    }
    return { problems, refused };
  }
}

const UNKNOWN = new Problem("NOT_FOUND", "the message names no tenant, or one that is not there");

/** Only what is asked of a row later: what waits to be stored is its text, and the request itself is let go of while it is young. */
const lean = (row: Row): Row => {
  const { channel, priority, idempotencyKey, scheduledFor, region, callbackUrl } = row.request;
  const request = { channel, content: NOTHING, priority, idempotencyKey, scheduledFor, region, callbackUrl };
  return { ...row, request: request as Row["request"] };
};
const NOTHING = {};

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Nothing of the message itself but the names of its fields. */
const refusalOf = ({ code, message, faults }: Problem, place: string) => ({
  place,
  code,
  faults: (faults ?? [{ path: "", message }])
    .slice(0, MOST_FAULTS)
    .map((fault) => ({ path: shortly(fault.path), message: shortly(fault.message) })),
});

const shortly = (words: string): string => words.slice(0, MOST_WORDS).replaceAll("\0", "").toWellFormed();
