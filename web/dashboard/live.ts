// Reads something, and again every now and then while the tab can be seen. One request at a time; a service that does not
// answer is asked more and more rarely.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export type Live<Value> = {
  value: Value | undefined;
  error: unknown;
  /** Reads now. */
  reload: () => void;
};

const LONGEST_MS = 60_000;
const JITTER = 0.2;

/** `what` names what is read: another name, another reading. Without `everyMs` it is read once. */
export function useLive<Value>(
  what: string,
  read: (signal: AbortSignal) => Promise<Value>,
  everyMs?: number,
): Live<Value> {
  const [state, setState] = useState<{ what: string; value?: Value; error?: unknown }>({ what });
  const reading = useRef(read);
  reading.current = read;
  const again = useRef(() => {});

  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let isReading = false;
    let isAskedAgain = false;

    async function next(): Promise<void> {
      // What is under way may have been asked before the change that somebody wants to see.
      isAskedAgain = isReading;
      if (isReading) return;
      isReading = true;
      clearTimeout(timer);
      try {
        const value = await reading.current(abort.signal);
        failures = 0;
        if (!abort.signal.aborted) setState({ what, value });
      } catch (error) {
        failures++;
        // What was read before is still shown.
        if (!abort.signal.aborted) setState((was) => (was.what === what ? { ...was, error } : { what, error }));
      }
      isReading = false;
      if (isAskedAgain && !abort.signal.aborted) return next();
      if (abort.signal.aborted || everyMs === undefined || document.hidden) return;
      const pauseMs = Math.min(everyMs * 2 ** Math.min(failures, 10), Math.max(LONGEST_MS, everyMs));
      timer = setTimeout(next, pauseMs * (1 + JITTER * (Math.random() - 0.5)));
    }
    const look = () => {
      if (document.hidden) clearTimeout(timer);
      else if (everyMs !== undefined) void next();
    };
    again.current = () => void next();
    document.addEventListener("visibilitychange", look);
    void next();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [what, everyMs]);

  const reload = useCallback(() => again.current(), []);
  const isOfThis = state.what === what;
  return { value: isOfThis ? state.value : undefined, error: isOfThis ? state.error : undefined, reload };
}
