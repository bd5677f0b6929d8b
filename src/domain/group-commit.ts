// Turns many concurrent calls into few commits.
//
// What arrives while a commit is under way waits and shares the next one; what arrives alone goes at
// once. Each caller is answered after the commit that holds its own rows, never before. Memory is
// bounded: past a limit of waiting rows or bytes, a call is refused.

export type GroupCommitOptions<Row, Outcome> = {
  /** One commit; answers with an outcome per row, in order. */
  commit: (rows: Row[]) => Promise<Outcome[]>;
  /** Commits under way at once. */
  lanes: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** What waits fails with a commit that fails, instead of meeting the same outage one timeout after the other. */
  isWaitingFailedToo?: boolean;
};

export type GroupCommit<Row, Outcome> = {
  /** Undefined when too much is waiting already. The rows of one call are committed together. */
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
  bytes: number;
  reject: (error: unknown) => void;
} & (
  | { rows: Row[]; resolve: (outcomes: Outcome[]) => void }
  | { rows: undefined; row: Row; resolve: (outcome: Outcome) => void }
);

const sizeOf = ({ rows }: { rows: unknown[] | undefined }): number => rows?.length ?? 1;

export function createGroupCommit<Row, Outcome>(options: GroupCommitOptions<Row, Outcome>): GroupCommit<Row, Outcome> {
  const { commit, lanes, maxWaitingRows, maxWaitingBytes } = options;
  let queue: Call<Row, Outcome>[] = [];
  let waitingRows = 0;
  let waitingBytes = 0;
  let busyLanes = 0;
  let isPlanned = false;
  let idlers: (() => void)[] = [];

  // Waits for the end of this turn of the event loop, so that what arrived in one turn goes together.
  function plan(): void {
    if (isPlanned || busyLanes >= lanes || queue.length === 0) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      void run(takeCalls());
    });
  }

  /** As many whole calls as fit into one commit, at least one. */
  function takeCalls(): Call<Row, Outcome>[] {
    let rows = 0;
    let bytes = 0;
    let count = 0;
    for (const call of queue) {
      rows += sizeOf(call);
      bytes += call.bytes;
      if (count > 0 && (rows > MAX_COMMIT_ROWS || bytes > MAX_COMMIT_BYTES)) break;
      count++;
    }
    const taken = queue.slice(0, count);
    queue = queue.slice(count);
    return taken;
  }

  async function run(calls: Call<Row, Outcome>[]): Promise<void> {
    busyLanes++;
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
      if (options.isWaitingFailedToo) calls.push(...queue.splice(0));
      for (const { reject } of calls) reject(error);
    }
    busyLanes--;
    for (const call of calls) {
      waitingRows -= sizeOf(call);
      waitingBytes -= call.bytes;
    }
    plan();
    if (waitingRows === 0) {
      for (const resolve of idlers) resolve();
      idlers = [];
    }
  }

  function hasRoom(rows: number, bytes: number): boolean {
    if (waitingRows + rows > maxWaitingRows || waitingBytes + bytes > maxWaitingBytes) return false;
    waitingRows += rows;
    waitingBytes += bytes;
    return true;
  }

  return {
    submit(rows, bytes) {
      if (!hasRoom(rows.length, bytes)) return undefined;
      return new Promise((resolve, reject) => {
        queue.push({ rows, bytes, resolve, reject });
        plan();
      });
    },
    submitOne(row, bytes) {
      if (!hasRoom(1, bytes)) return undefined;
      return new Promise((resolve, reject) => {
        queue.push({ rows: undefined, row, bytes, resolve, reject });
        plan();
      });
    },
    waitingRows: () => waitingRows,
    idle: () => new Promise((resolve) => (waitingRows === 0 ? resolve() : idlers.push(resolve))),
  };
}
