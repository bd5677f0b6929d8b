// What was found in the database a moment ago, for a few seconds and so many at most.

const REMEMBER_MS = 5_000;
const MAX_REMEMBERED = 10_000;

export type Remembered<Value> = {
  get(id: string): Promise<Value | undefined>;
  forget(id: string): void;
};

/** What is not there is looked for each time. */
export function createRemembered<Value>(
  find: (id: string) => Promise<Value | undefined>,
  now: () => number,
): Remembered<Value> {
  const all = new Map<string, { value: Value; untilMs: number }>();
  return {
    async get(id) {
      const known = all.get(id);
      if (known && known.untilMs > now()) return known.value;
      const value = await find(id);
      if (value !== undefined) remember(all, id, { value, untilMs: now() + REMEMBER_MS });
      return value;
    },
    forget: (id) => void all.delete(id),
  };
}

/** Maps keep the order of insertion: the first is the oldest. */
export function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= MAX_REMEMBERED) map.delete(map.keys().next().value as string);
  map.delete(key);
  map.set(key, value);
}
