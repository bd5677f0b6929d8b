// What a scheduler fires with, for tests that fire themselves.

import { after } from "node:test";
import type pg from "pg";
import { createIds } from "#domain/ids.ts";
import type { Firing } from "#steps/planned/fire.ts";
import { type AcceptWithin, createAcceptWithin } from "#steps/walk/accept.ts";
import { createNoticeTexts } from "#templates/inline.ts";
import { createRenderer } from "#templates/renderer.ts";

const renderer = createRenderer();
after(() => renderer.close());

export const firingOn = (pool: pg.Pool, more: Partial<Firing> = {}): Firing => ({
  pool,
  acceptWithin: createAcceptWithin({ newId: createIds(), now: () => new Date() }),
  fill: createNoticeTexts(renderer).fill,
  monotonic: () => performance.now(),
  chunkBytes: 2 * 1024 * 1024,
  onFailure: () => {},
  isStopping: () => false,
  ...more,
});

export type Accepted = { requests: number; bytes: number };

/** Accepts as ever, and notes how much it was given at once. */
export function countingAccept(calls: Accepted[]): AcceptWithin {
  const accept = createAcceptWithin({ newId: createIds(), now: () => new Date() });
  return (tx, tenant, requests) => {
    const bytes = requests.reduce((sum: number, request) => sum + JSON.stringify(request).length, 0);
    calls.push({ requests: requests.length, bytes });
    return accept(tx, tenant, requests);
  };
}
