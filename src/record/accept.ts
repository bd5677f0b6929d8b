// Stores accepted notifications: many in one statement, one commit.

import type { EngineName, Handoff } from "#domain/handoff.ts";
import type { Status } from "#domain/status.ts";
import type { Stretch } from "#domain/stretches.ts";
import type { Queryable } from "#store/connection/database.ts";

/** One of the few requests whose idempotency key was already taken. */
export type Replay = { id: string; isSame: boolean; status: Status; acceptedAt: Date };

/**
 * `held` are those that were not stored, as an open transaction holds their key; `outside`, as they name one region more than there may be.
 */
export type Stored = {
  acceptedAt: Date;
  replays: ReadonlyMap<string, Replay>;
  held: ReadonlySet<string>;
  outside: ReadonlySet<string>;
  /** What an engine is to be offered once this is committed. */
  handed: readonly Handoff[];
};

type Answer = {
  accepted_at: Date;
  replays: { i: string; id: string; same: boolean; status: Status | null; acceptedAt: string | null }[] | null;
  held: string[] | null;
  outside: string[] | null;
  handed: Handoff[] | null;
};

const NO_REPLAYS: ReadonlyMap<string, Replay> = new Map();
const NONE: ReadonlySet<string> = new Set();

const ACCEPT = {
  name: "carillon-accept",
  text: "select accepted_at, replays, held, outside, handed from carillon.accept($1, $2, $3, $4, $5, $6)",
};
/** Also marks those that asked to be called back. */
const ACCEPT_CALLING = {
  name: "carillon-accept-calling",
  text: "select accepted_at, replays, held, outside, handed from carillon.accept_calling($1, $2, $3, $4, $5, $6)",
};

export type StoreOptions = {
  /** Without it the transaction's own settings say how long it waits for a key that another holds. */
  patienceMs?: number | undefined;
  /** Those that whoever calls offers to, after the commit. */
  engines?: readonly EngineName[] | undefined;
};

export type RowsOptions = StoreOptions & {
  /** Where the rows will be; only who says so hands over. */
  stretches?: readonly Stretch[] | undefined;
};

/** `rows` are the JSON objects that carillon.accept() describes, each already written as text. */
export async function storeAccepted(
  db: Queryable,
  rows: readonly string[],
  { hasKeys, hasRegions, hasCallbacks }: { hasKeys: boolean; hasRegions: boolean; hasCallbacks: boolean },
  { patienceMs, engines, stretches }: RowsOptions = {},
): Promise<Stored> {
  const { rows: answers } = await db.query<Answer>({
    ...(hasCallbacks ? ACCEPT_CALLING : ACCEPT),
    values: [`[${rows.join(",")}]`, hasKeys, patienceMs, hasRegions, engines, stretches && JSON.stringify(stretches)],
  });
  const answer = answers[0] as Answer;
  const held = answer.held ? new Set(answer.held) : NONE;
  const outside = answer.outside ? new Set(answer.outside) : NONE;
  const handed = answer.handed ?? [];
  if (!answer.replays) return { acceptedAt: answer.accepted_at, replays: NO_REPLAYS, held, outside, handed };
  const replays = new Map(
    answer.replays.map(({ i, id, same, status, acceptedAt }) => [
      i,
      // Retention may have dropped the notification while its key is still kept: it was accepted and is over.
      { id, isSame: same, status: status ?? "sent", acceptedAt: new Date(acceptedAt ?? answer.accepted_at) },
    ]),
  );
  return { acceptedAt: answer.accepted_at, replays, held, outside, handed };
}
