// A queue with Redis beside it, whose ready work is moved from one to the other step by step, as the keeper does it.

import { after, beforeEach } from "node:test";
import type { MoveStrategy, PlaceName } from "#domain/handoff.ts";
import { abortMove, beginMove, currentPlace, findMove, lockMoves, type Move, moveOn } from "#queue/postgres/moves.ts";
import { inTransaction } from "#store/connection/database.ts";
import type { QueueHarness } from "../conformance/queue-harness.ts";
import { setUpQueue, tend } from "./queue-on-postgres.ts";
import { openRedisEngine } from "./redis-engine.ts";
import { NO_REDIS, startRedis, tell } from "./servers/redis.ts";

/** Before each test it is empty, everything waits in PostgreSQL, and there was no move. Where there is no Redis all is to be skipped. */
export async function openMovingQueue() {
  const server = await startRedis();
  const opened = server && (await openRedisEngine(server.url));
  const empty = async () => void (server && (await tell(server.port, "FLUSHALL")));
  const harness = (opened && (await setUpQueue({ engines: [opened.engine, opened.engine], empty }))) as QueueHarness;
  const tendRedis = async () => void (opened && (await tend(opened.engine, harness.db)));
  beforeEach(async () => {
    if (!opened) return;
    await harness.clear();
    await harness.db.query("truncate carillon.engine_moves, carillon.engine_audits, carillon.audit");
    await harness.db.query("update carillon.engine set name = 'postgres'");
  });
  after(async () => {
    await harness?.stop();
    await opened?.close();
    await server?.stop();
  });
  return {
    harness,
    empty,
    tendRedis,
    skip: server ? (false as const) : NO_REDIS,
    begin: (target: PlaceName, strategy: MoveStrategy = "live-forward") =>
      inTransaction(harness.pool, async (tx) => {
        await lockMoves(tx);
        await beginMove(tx, await currentPlace(tx), target, strategy);
      }),
    abort: () =>
      inTransaction(harness.pool, async (tx) => {
        await lockMoves(tx);
        await abortMove(tx, (await findMove(tx)) as Move);
      }),
    /** What the keeper does, once. */
    async step() {
      await moveOn(harness.db, 100);
      await tendRedis();
    },
    normal: (n: number) => harness.enqueue(Array(n).fill("normal")),
  };
}
