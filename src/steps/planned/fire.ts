// What firing needs, and the rule for whatever cannot be fired: it is put off by itself, and holds up nobody behind it.

import type pg from "pg";
import { bytesOf, type Notice } from "#domain/notice.ts";
import type { AcceptWithin } from "#steps/walk/accept.ts";
import { isOutage, isTooSlow } from "#store/connection/database.ts";
import type { NoticeTexts, NoticeVariables } from "#templates/inline.ts";

export type Firing = {
  pool: pg.Pool;
  acceptWithin: AcceptWithin;
  fill: NoticeTexts["fill"];
  monotonic: () => number;
  /** How many bytes of requests one transaction takes. What is larger becomes a broadcast. */
  chunkBytes: number;
  /** Something could not be fired, and will be tried again. */
  onFailure: (what: Fired, error: unknown) => void;
  /** Nothing more is begun: what is due stays due. */
  isStopping: () => boolean;
};
export type Fired = { tenant: number; name: string };

/** After this many failures, three quarters of an hour, what cannot wait for ever is given up. */
export const MOST_FAILURES = 12;
/** The longest that is kept of an error. */
const REASON_LENGTH = 500;

/** Does it or puts it off; either way it is out of the way for now. Only an outage throws. */
export async function fireAlone<Value>(
  { onFailure }: Pick<Firing, "onFailure">,
  what: Fired,
  act: () => Promise<Value>,
  putOff: (reason: string) => Promise<void>,
): Promise<Value | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isOutage(error) && !isTooSlow(error)) throw error;
    onFailure(what, error);
    await putOff(reasonOf(error));
    return undefined;
  }
}

/** A tenant whose firing takes longer than this, its texts perhaps, goes on in the next round, after the others. */
const TURN_MS = 500;

/** Whether a tenant has had its time in this round, or everybody has. They come one after the other. */
export function createTurn({ monotonic, isStopping }: Firing): (tenant: number) => boolean {
  let turn: { tenant: number; startedAt: number } | undefined;
  return (tenant) => {
    const now = monotonic();
    if (turn?.tenant !== tenant) turn = { tenant, startedAt: now };
    return isStopping() || now - turn.startedAt > TURN_MS;
  };
}

export type FilledNotice = { notice: Notice; bytes: number } | { error: string };

/** Its texts filled, or why that will never do. Throws where it may go well another time. */
export async function filled(
  { fill }: Firing,
  tenant: number,
  given: Notice,
  variables: NoticeVariables,
): Promise<FilledNotice> {
  const done = await fill(tenant, given, variables);
  if ("error" in done) {
    if (done.isPassing) throw new Error(done.error);
    return { error: done.error };
  }
  return { notice: done.notice, bytes: bytesOf(done.notice) };
}

/** As PostgreSQL can keep it. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll("\0", "").slice(0, REASON_LENGTH).toWellFormed();
}
