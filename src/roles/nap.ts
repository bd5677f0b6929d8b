// How a loop sleeps: for a while, or until somebody wakes it. A call that comes while the loop is busy is
// remembered, so that nothing is slept through.

export type Nap = {
  wake(): void;
  /** True if woken since the last time it was asked. */
  wasWoken(): boolean;
  /** Returns at once if woken meanwhile. Remembers that it was, until wasWoken() is asked. */
  sleep(ms: number): Promise<void>;
};

export function createNap(): Nap {
  let isWoken = false;
  let rise: (() => void) | undefined;
  return {
    wake() {
      isWoken = true;
      rise?.();
    },
    wasWoken() {
      const was = isWoken;
      isWoken = false;
      return was;
    },
    sleep: (ms) =>
      new Promise((resolve) => {
        if (isWoken) return resolve();
        const timer = setTimeout(() => rise?.(), ms);
        rise = () => {
          clearTimeout(timer);
          rise = undefined;
          resolve();
        };
      }),
  };
}
