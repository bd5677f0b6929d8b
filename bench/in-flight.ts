/** Calls `call(i)` for each i below `count`, with at most `width` calls under way; resolves with calls per second. */
export async function inFlight(count: number, width: number, call: (i: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const startedAt = performance.now();
  const line = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: width }, line));
  return count / ((performance.now() - startedAt) / 1000);
}
