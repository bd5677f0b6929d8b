// Whose turn it is to use what all tenants share. Nobody has more than a part of it, whoever has waited goes before whoever
// was just served, and a line that is too long, or stands still, says so at once instead of growing.

import { Problem } from "#domain/problems.ts";
import { createLines } from "#timing/lines.ts";
import { tooSlow } from "./problem.ts";

export type TurnOptions = {
  /** Under way at once, of everybody and of one tenant. */
  abreast: number;
  perTenant: number;
  /** How many of one tenant may wait, and for how long. */
  line: number;
  patienceMs: number;
};

/** Does it when it is the tenant's turn, or throws the problem. */
export type Turns = <Value>(tenant: number, act: () => Promise<Value> | Value) => Promise<Value>;

/** Small ones take a moment, large ones may take seconds. */
export type RequestTurns = { small: Turns; large: Turns };

const PATIENCE_MS = 3_000;

export function createRequestTurns({ small, large }: { small: number; large: number }): RequestTurns {
  const perTenant = Math.ceil(large / 2);
  const inLarge = createTurns({ abreast: large, perTenant, line: 100, patienceMs: PATIENCE_MS });
  return {
    // Twice as many as have a connection: one statement need not wait for the answer to another. All connections may be one tenant's, as it
    // has each for a moment only.
    small: createTurns({ abreast: 2 * small, perTenant: small, line: 5_000, patienceMs: PATIENCE_MS }),
    large: (tenant, act) => inLarge(tenant, act).catch(tooSlow),
  };
}

type Waiting = { tenant: number; admit: () => void };

export function createTurns({ abreast, perTenant, line, patienceMs }: TurnOptions): Turns {
  let underWay = 0;
  const underWayOf = new Map<number, number>();
  const lines = createLines<Waiting>();

  const isFree = (tenant: number) => underWay < abreast && (underWayOf.get(tenant) ?? 0) < perTenant;

  function begin(tenant: number): void {
    underWay++;
    underWayOf.set(tenant, (underWayOf.get(tenant) ?? 0) + 1);
  }

  function end(tenant: number): void {
    underWay--;
    const left = (underWayOf.get(tenant) ?? 1) - 1;
    if (left > 0) underWayOf.set(tenant, left);
    else underWayOf.delete(tenant);
    while (underWay < abreast) {
      const next = lines.next(isFree);
      if (!next) return;
      begin(next.tenant);
      next.admit();
    }
  }

  function wait(tenant: number): Promise<void> {
    if (lines.lengthOf(tenant) >= line) {
      throw new Problem("TOO_MANY_REQUESTS", `${line} of this tenant wait already`, { retryAfterSeconds: 1 });
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        tenant,
        admit() {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        lines.leave(tenant, waiting);
        reject(new Problem("OVERLOADED", "its turn did not come in time", { retryAfterSeconds: 1 }));
      }, patienceMs).unref();
      lines.join(tenant, waiting);
    });
  }

  return async (tenant, act) => {
    if (isFree(tenant)) begin(tenant);
    else await wait(tenant);
    try {
      return await act();
    } finally {
      end(tenant);
    }
  };
}
