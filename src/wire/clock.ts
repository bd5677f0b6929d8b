// The time that a request has: so long to get its connection, and once it leaves as long again to be answered.
//
// One clock for both would punish the receiver for what we waited for ourselves: a request that left late would be given up
// while it is being answered, and nobody would know whether it was sent.

export type Time = {
  /** Ends it at once. */
  signal: AbortSignal;
  /** Without it, the signal is the only deadline. */
  timeoutMs?: number | undefined;
};

export type Clock = {
  /** Aborts when time is up, or with the signal that was given. */
  signal: AbortSignal;
  /** The request leaves: its time begins anew. */
  restart(): void;
  /** Once it has ended, whatever came of it. */
  stop(): void;
};

export function startClock({ signal, timeoutMs }: Time): Clock {
  const ending = new AbortController();
  const end = () => ending.abort(signal.reason);
  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => ending.abort(new Error("no answer in time")), timeoutMs);
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return {
    signal: ending.signal,
    restart: () => void timer?.refresh(),
    stop() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    },
  };
}
