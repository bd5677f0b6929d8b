// Which templates a thread keeps compiled: a bounded number and size, of which no tenant can take another's part.

export type Kept = {
  /** Notes that a template is used: whether it is kept already, will be from now on, and which must go for it. */
  use(key: string, tenant: number, bytes: number): { isKnown: boolean; isKept: boolean; forget: string[] };
  forget(key: string): void;
};

/** Compiled, a template takes up to fifty times what it was written with. */
const MOST_BYTES = 2 * 1024 * 1024;
const MOST = 500;

export function createKept(): Kept {
  /** The one used longest ago first. */
  const kept = new Map<string, { tenant: number; bytes: number }>();
  const shares = new Map<number, number>();
  let total = 0;

  const drop = (key: string) => {
    const { tenant = 0, bytes = 0 } = kept.get(key) ?? {};
    if (!kept.delete(key)) return;
    total -= bytes;
    shares.set(tenant, (shares.get(tenant) ?? 0) - bytes);
    if (shares.get(tenant) === 0) shares.delete(tenant);
  };
  /** The oldest of the tenant who has the most. */
  const oldest = (): string | undefined => {
    const [[greedy] = []] = [...shares].sort(([, a], [, b]) => b - a);
    for (const [key, { tenant }] of kept) if (tenant === greedy) return key;
    return undefined;
  };

  return {
    use(key, tenant, bytes) {
      const found = kept.get(key);
      if (found) {
        kept.delete(key);
        kept.set(key, found);
        return { isKnown: true, isKept: true, forget: [] };
      }
      if (bytes > MOST_BYTES / 4) return { isKnown: false, isKept: false, forget: [] };
      const forget: string[] = [];
      while (kept.size >= MOST || total + bytes > MOST_BYTES) {
        const gone = oldest();
        if (gone === undefined) break;
        drop(gone);
        forget.push(gone);
      }
      kept.set(key, { tenant, bytes });
      shares.set(tenant, (shares.get(tenant) ?? 0) + bytes);
      total += bytes;
      return { isKnown: false, isKept: true, forget };
    },
    forget: drop,
  };
}
