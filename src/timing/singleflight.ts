// What is under way in this process, by key: whoever wants the same shares its result instead of doing it again.
//
// A worker that lost a lease may get the same notification back while its first send still hangs. Two calls instead of one
// with a function, so that work which ends at once costs neither a closure nor an entry.

export type Singleflight<Value> = {
  /** What is under way for this key. */
  find(key: string): Promise<Value> | undefined;
  /** Until it ends, others find it. */
  keep(key: string, work: Promise<Value>): Promise<Value>;
};

export function createSingleflight<Value>(): Singleflight<Value> {
  const flights = new Map<string, Promise<Value>>();
  return {
    find: (key) => (flights.size === 0 ? undefined : flights.get(key)),
    keep(key, work) {
      flights.set(key, work);
      const end = () => {
        if (flights.get(key) === work) flights.delete(key);
      };
      work.then(end, end);
      return work;
    },
  };
}
