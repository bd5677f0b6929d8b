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
};

export type GroupCommit<Row, Outcome> = {
  /** Undefined when too much is waiting already. The rows of one call are committed together. */
  submit(rows: Row[], bytes: number): Promise<Outcome[]> | undefined;
  waitingRows(): number;
  /** Resolves once nothing is waiting. */
  idle(): Promise<void>;
};

const MAX_COMMIT_ROWS = 1000;
const MAX_COMMIT_BYTES = 8 * 1024 * 1024;

type Call<Row, Outcome> = {
  rows: Row[];
  bytes: number;
  resolve: (outcomes: Outcome[]) => void;
  reject: (error: unknown) => void;
};

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
      rows += call.rows.length;
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
      const outcomes = await commit(calls.flatMap(({ rows }) => rows));
      let from = 0;
      for (const { rows, resolve } of calls) {
        resolve(outcomes.slice(from, from + rows.length));
        from += rows.length;
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
    busyLanes--;
    for (const { rows, bytes } of calls) {
      waitingRows -= rows.length;
      waitingBytes -= bytes;
    }
    plan();
    if (waitingRows === 0) {
      for (const resolve of idlers) resolve();
      idlers = [];
    }
  }

  return {
    submit(rows, bytes) {
      if (waitingRows + rows.length > maxWaitingRows || waitingBytes + bytes > maxWaitingBytes) return undefined;
      waitingRows += rows.length;
      waitingBytes += bytes;
      return new Promise((resolve, reject) => {
        queue.push({ rows, bytes, resolve, reject });
        plan();
      });
    },
    waitingRows: () => waitingRows,
    idle: () => new Promise((resolve) => (waitingRows === 0 ? resolve() : idlers.push(resolve))),
  };
}
