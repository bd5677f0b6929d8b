// One act for many; where it is refused, halves find the one that is to blame.
//
// It costs nothing as long as all goes well, some twenty acts for one bad row among a thousand, and at worst two for each row.

export type BisectOptions<Row, Result> = {
  /** All or nothing: an outcome per row, in order. */
  act: (rows: readonly Row[]) => Promise<Result[]>;
  /** What would fail whoever is among them. It is thrown, not searched for. */
  isOutage: (error: unknown) => boolean;
  /** What becomes of a row that is refused when it comes alone. */
  refuse: (error: unknown, row: Row) => Result;
};

/** One outcome per row, in order. Rejects only in an outage; the halves before it may have been acted on by then. */
export async function bisect<Row, Result>(
  rows: readonly Row[],
  options: BisectOptions<Row, Result>,
): Promise<Result[]> {
  try {
    return await options.act(rows);
  } catch (error) {
    if (options.isOutage(error)) throw error;
    const [only] = rows;
    if (only === undefined) throw error;
    if (rows.length === 1) return [options.refuse(error, only)];
    const middle = Math.ceil(rows.length / 2);
    const first = await bisect(rows.slice(0, middle), options);
    return [...first, ...(await bisect(rows.slice(middle), options))];
  }
}
