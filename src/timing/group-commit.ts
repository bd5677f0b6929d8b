// Turns many concurrent calls into few commits.
//
// What arrives while a commit is under way waits and shares the next one; what arrives alone goes at
// once. Each caller is answered after the commit that holds its own rows, never before. Memory is
// bounded: past a limit of waiting rows or bytes, a call is refused. Where rows have owners, these take
// turns, a call each, and share the room: whoever has much waiting takes neither time nor room from others.

export type GroupCommitOptions<Row, Outcome> = {
  /** One commit; answers with an outcome per row, in order. */
  commit: (rows: Row[]) => Promise<Outcome[]>;
  /** Commits under way at once. */
  abreast: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** Whose a row is. The rows of a call are one owner's. */
  ownerOf?: (row: Row) => number;
  /** What waits fails with a commit that fails, instead of meeting the same outage one timeout after the other. */
  isWaitingFailedToo?: boolean;
};

export type GroupCommit<Row, Outcome> = {
  /** Undefined when too much of its owner is waiting already. The rows of one call are committed together. */
  submit(rows: Row[], bytes: number): Promise<Outcome[]> | undefined;
  /** The same for a single row, at half the garbage. */
  submitOne(row: Row, bytes: number): Promise<Outcome> | undefined;
  waitingRows(): number;
  /** Resolves once nothing is waiting. */
  idle(): Promise<void>;
};

const MAX_COMMIT_ROWS = 1000;
const MAX_COMMIT_BYTES = 8 * 1024 * 1024;

type Call<Row, Outcome> = {
  owner: number;
  bytes: number;
  reject: (error: unknown) => void;
} & (
  | { rows: Row[]; resolve: (outcomes: Outcome[]) => void }
  | { rows: undefined; row: Row; resolve: (outcome: Outcome) => void }
);

/** What an owner has waiting, and under way. */
type Part = { rows: number; bytes: number };

const sizeOf = ({ rows }: { rows: unknown[] | undefined }): number => rows?.length ?? 1;

export function createGroupCommit<Row, Outcome>(options: GroupCommitOptions<Row, Outcome>): GroupCommit<Row, Outcome> {
  const { commit, abreast, maxWaitingRows, maxWaitingBytes, ownerOf = () => 0 } = options;
  /** Calls that wait, by owner; the owner that had its turn last stands last. */
  const lines = new Map<number, Call<Row, Outcome>[]>();
  const parts = new Map<number, Part>();
  let waitingRows = 0;
  let waitingBytes = 0;
  let underWay = 0;
  let isPlanned = false;
  let idlers: (() => void)[] = [];

  // Waits for the end of this turn of the event loop, so that what arrived in one turn goes together.
  function plan(): void {
    if (isPlanned || underWay >= abreast || lines.size === 0) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      void run(takeCalls());
    });
  }

  /** As many whole calls as fit into one commit, at least one. */
  function takeCalls(): Call<Row, Outcome>[] {
    const taken: Call<Row, Outcome>[] = [];
    let rows = 0;
    let bytes = 0;
    // A line that is put back stands last, and is come to again.
    for (const [owner, line] of lines) {
      const call = line[0] as Call<Row, Outcome>;
      rows += sizeOf(call);
      bytes += call.bytes;
      if (taken.length > 0 && (rows > MAX_COMMIT_ROWS || bytes > MAX_COMMIT_BYTES)) break;
      taken.push(call);
      line.shift();
      lines.delete(owner);
      if (line.length > 0) lines.set(owner, line);
    }
    return taken;
  }

  function wait(call: Call<Row, Outcome>): void {
    const line = lines.get(call.owner);
    if (line) line.push(call);
    else lines.set(call.owner, [call]);
    plan();
  }

  function waitingCalls(): Call<Row, Outcome>[] {
    const all = [...lines.values()].flat();
    lines.clear();
    return all;
  }

  async function run(calls: Call<Row, Outcome>[]): Promise<void> {
    underWay++;
    plan();
    try {
      const all: Row[] = [];
      for (const call of calls) {
        if (call.rows) all.push(...call.rows);
        else all.push(call.row);
      }
      const outcomes = await commit(all);
      let from = 0;
      for (const call of calls) {
        if (call.rows) call.resolve(outcomes.slice(from, from + call.rows.length));
        else call.resolve(outcomes[from] as Outcome);
        from += sizeOf(call);
      }
    } catch (error) {
      if (options.isWaitingFailedToo) calls.push(...waitingCalls());
      for (const { reject } of calls) reject(error);
    }
    underWay--;
    for (const call of calls) leave(call);
    plan();
    if (waitingRows === 0) {
      for (const resolve of idlers) resolve();
      idlers = [];
    }
  }

  const fits = (rows: number, bytes: number, share: number): boolean =>
    rows <= maxWaitingRows * share && bytes <= maxWaitingBytes * share;

  /** Shares count once the room is full. Whoever has nothing waiting yet gets in even then: the room is for those who have much. */
  function hasRoom(owner: number, rows: number, bytes: number): boolean {
    if (!fits(rows, bytes, 1)) return false;
    const part = parts.get(owner) ?? { rows: 0, bytes: 0 };
    const isFull = !fits(waitingRows + rows, waitingBytes + bytes, 1);
    if (isFull && parts.has(owner) && !fits(part.rows + rows, part.bytes + bytes, 1 / parts.size)) return false;
    part.rows += rows;
    part.bytes += bytes;
    parts.set(owner, part);
    waitingRows += rows;
    waitingBytes += bytes;
    return true;
  }

  function leave(call: Call<Row, Outcome>): void {
    const { owner, bytes } = call;
    const part = parts.get(owner) as Part;
    part.rows -= sizeOf(call);
    part.bytes -= bytes;
    if (part.rows === 0) parts.delete(owner);
    waitingRows -= sizeOf(call);
    waitingBytes -= bytes;
  }

  return {
    submit(rows, bytes) {
      const owner = rows[0] === undefined ? 0 : ownerOf(rows[0]);
      if (!hasRoom(owner, rows.length, bytes)) return undefined;
      return new Promise((resolve, reject) => wait({ owner, rows, bytes, resolve, reject }));
    },
    submitOne(row, bytes) {
      const owner = ownerOf(row);
      if (!hasRoom(owner, 1, bytes)) return undefined;
      return new Promise((resolve, reject) => wait({ owner, rows: undefined, row, bytes, resolve, reject }));
    },
    waitingRows: () => waitingRows,
    idle: () => new Promise((resolve) => (waitingRows === 0 ? resolve() : idlers.push(resolve))),
  };
}
