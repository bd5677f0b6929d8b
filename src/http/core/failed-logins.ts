// Addresses that keep coming with wrong keys are told to wait.

import { Problem } from "#domain/problems.ts";
import { remember } from "./remembered.ts";

const ALLOWED = 20;
const WINDOW_MS = 60_000;

/** Throws the problem. */
export type Refuse = (address: string, detail: string) => never;

export function createRefuse(now: () => number, onFailure: (() => void) | undefined): Refuse {
  const failures = new Map<string, { count: number; untilMs: number }>();
  return (address, detail) => {
    onFailure?.();
    const entry = failures.get(address);
    if (!entry || entry.untilMs <= now()) {
      remember(failures, address, { count: 1, untilMs: now() + WINDOW_MS });
    } else if (++entry.count > ALLOWED) {
      const retryAfterSeconds = Math.ceil((entry.untilMs - now()) / 1000);
      throw new Problem("TOO_MANY_FAILED_LOGINS", `${detail}; wait ${retryAfterSeconds} s`, { retryAfterSeconds });
    }
    throw new Problem("UNAUTHENTICATED", detail);
  };
}
