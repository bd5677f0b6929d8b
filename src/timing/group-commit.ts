// Turns many concurrent calls into few commits.
//
// What arrives while a commit is under way waits and shares the next one; what arrives alone goes at
// once. Each caller is answered after the commit that holds its own rows, never before. Memory is
// bounded: past a limit of waiting rows or bytes, a call is refused. Where rows have owners, these take
// turns, a call each, and share the room: whoever has much waiting takes neither time nor room from others.

import { createLines, type Lines } from "./lines.ts";
import { createRoom } from "./room.ts";

export type GroupCommitOptions<Row, Result> = {
  /** One commit; answers with an outcome per row, in order. */
  commit: (rows: Row[]) => Promise<Result[]>;
  /** Commits under way at once. */
  abreast: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** Whose a row is. The rows of a call are one owner's. */
  ownerOf?: (row: Row) => number;
  /** What waits fails with a commit that fails, instead of meeting the same outage one timeout after the other. */
  isWaitingFailedToo?: boolean;
};

export type GroupCommit<Row, Result> = {
  /** Undefined when too much of its owner is waiting already. The rows of one call are committed together. */
  submit(rows: Row[], bytes: number): Promise<Result[]> | undefined;
  /** The same for a single row, at half the garbage. */
  submitOne(row: Row, bytes: number): Promise<Result> | undefined;
  waitingRows(): number;
  /** Resolves once nothing is waiting. */
  idle(): Promise<void>;
};

const MAX_COMMIT_ROWS = 1000;
const MAX_COMMIT_BYTES = 8 * 1024 * 1024;

type Call<Row, Result> = {
  owner: number;
  bytes: number;
  reject: (error: unknown) => void;
} & (
  | { rows: Row[]; resolve: (outcomes: Result[]) => void }
  | { rows: undefined; row: Row; resolve: (outcome: Result) => void }
);

const sizeOf = ({ rows }: { rows: unknown[] | undefined }): number => rows?.length ?? 1;

export function createGroupCommit<Row, Result>(options: GroupCommitOptions<Row, Result>): GroupCommit<Row, Result> {
  const { commit, abreast, ownerOf = () => 0 } = options;
  const lines = createLines<Call<Row, Result>>();
  const room = createRoom(options.maxWaitingRows, options.maxWaitingBytes);
  let underWay = 0;
  let isPlanned = false;
  let idlers: (() => void)[] = [];

  // Waits for the end of this turn of the event loop, so that what arrived in one turn goes together.
  function plan(): void {
    if (isPlanned || underWay >= abreast || lines.owners() === 0) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      void run(takeCalls(lines));
    });
  }

  async function run(calls: Call<Row, Result>[]): Promise<void> {
    underWay++;
    plan();
    try {
      answer(calls, await commit(rowsOf(calls)));
    } catch (error) {
      if (options.isWaitingFailedToo) calls.push(...lines.clear());
      for (const { reject } of calls) reject(error);
    }
    underWay--;
    for (const call of calls) room.leave(call.owner, sizeOf(call), call.bytes);
    plan();
    if (room.rows() === 0) {
      for (const resolve of idlers) resolve();
      idlers = [];
    }
  }

  function wait(call: Call<Row, Result>): void {
    lines.join(call.owner, call);
    plan();
  }

  return {
    submit(rows, bytes) {
      const owner = rows[0] === undefined ? 0 : ownerOf(rows[0]);
      if (!room.enter(owner, rows.length, bytes)) return undefined;
      return new Promise((resolve, reject) => wait({ owner, rows, bytes, resolve, reject }));
    },
    submitOne(row, bytes) {
      const owner = ownerOf(row);
      if (!room.enter(owner, 1, bytes)) return undefined;
      return new Promise((resolve, reject) => wait({ owner, rows: undefined, row, bytes, resolve, reject }));
    },
    waitingRows: room.rows,
    idle: () => new Promise((resolve) => (room.rows() === 0 ? resolve() : idlers.push(resolve))),
  };
}

/** As many whole calls as fit into one commit, at least one. */
function takeCalls<Row, Result>(lines: Lines<Call<Row, Result>>): Call<Row, Result>[] {
  const taken: Call<Row, Result>[] = [];
  let rows = 0;
  let bytes = 0;
  let isFull = false;
  // The first that does not fit ends it: what is smaller and stands behind must not go before it.
  const fits = (_owner: number, call: Call<Row, Result>): boolean => {
    if (isFull) return false;
    rows += sizeOf(call);
    bytes += call.bytes;
    isFull = taken.length > 0 && (rows > MAX_COMMIT_ROWS || bytes > MAX_COMMIT_BYTES);
    return !isFull;
  };
  for (let call = lines.next(fits); call; call = lines.next(fits)) taken.push(call);
  return taken;
}

function rowsOf<Row, Result>(calls: readonly Call<Row, Result>[]): Row[] {
  const all: Row[] = [];
  for (const call of calls) {
    if (call.rows) all.push(...call.rows);
    else all.push(call.row);
  }
  return all;
}

function answer<Row, Result>(calls: readonly Call<Row, Result>[], outcomes: Result[]): void {
  let from = 0;
  for (const call of calls) {
    if (call.rows) call.resolve(outcomes.slice(from, from + call.rows.length));
    else call.resolve(outcomes[from] as Result);
    from += sizeOf(call);
  }
}
