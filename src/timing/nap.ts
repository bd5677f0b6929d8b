// How a loop sleeps: for a while, or until somebody wakes it. A call that comes while the loop is busy is
// remembered, so that nothing is slept through.

export type Nap = {
  wake(): void;
  /** True if woken since the last time it was asked. */
  wasWoken(): boolean;
  /** Returns at once if woken meanwhile. Remembers that it was, until wasWoken() is asked. Several may sleep. */
  sleep(ms: number): Promise<void>;
};

export function createNap(): Nap {
  let isWoken = false;
  const sleepers = new Set<() => void>();
  return {
    wake() {
      isWoken = true;
      for (const rise of sleepers) rise();
    },
    wasWoken() {
      const was = isWoken;
      isWoken = false;
      return was;
    },
    sleep: (ms) =>
      new Promise((resolve) => {
        if (isWoken) return resolve();
        const rise = () => {
          clearTimeout(timer);
          sleepers.delete(rise);
          resolve();
        };
        const timer = setTimeout(rise, ms);
        sleepers.add(rise);
      }),
  };
}
