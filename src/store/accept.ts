// Stores accepted notifications: many in one statement, one commit.

import type { Status } from "../domain/status.ts";
import type { Queryable } from "./database.ts";

/** One of the few requests whose idempotency key was already taken. */
export type Replay = { id: string; isSame: boolean; status: Status; acceptedAt: Date };

export type Stored = { acceptedAt: Date; replays: ReadonlyMap<string, Replay> };

type Answer = {
  accepted_at: Date;
  replays: { i: string; id: string; same: boolean; status: Status | null; acceptedAt: string | null }[] | null;
};

const NO_REPLAYS: ReadonlyMap<string, Replay> = new Map();

/** `rows` are the JSON objects that carillon.accept() describes, each already written as text. */
export async function storeAccepted(db: Queryable, rows: readonly string[], hasKeys: boolean): Promise<Stored> {
  const { rows: answers } = await db.query<Answer>({
    name: "carillon-accept",
    text: "select accepted_at, replays from carillon.accept($1, $2)",
    values: [`[${rows.join(",")}]`, hasKeys],
  });
  const answer = answers[0] as Answer;
  if (!answer.replays) return { acceptedAt: answer.accepted_at, replays: NO_REPLAYS };
  const replays = new Map(
    answer.replays.map(({ i, id, same, status, acceptedAt }) => [
      i,
      // Retention may have dropped the notification while its key is still kept: it was accepted and is over.
      { id, isSame: same, status: status ?? "sent", acceptedAt: new Date(acceptedAt ?? answer.accepted_at) },
    ]),
  );
  return { acceptedAt: answer.accepted_at, replays };
}
