// The floor under batches: COPY of the rows that Carillon would write, into Carillon's own tables.
//
// Rows are text before the clock starts: no validation, no ids, no JSON. One simple query holds the
// transaction and both COPYs, which saves the round trips between them; that, and writing the copy
// messages by hand, is faster than a stream library would be.

import pg from "pg";
import { createIds } from "../../src/domain/ids.ts";
import { rankOf } from "../../src/domain/priority.ts";
import { migrate } from "../../src/store/connection/migrate.ts";
import { notification } from "../payload.ts";
import type { Adapter, BulkProducer } from "./adapter.ts";
import { clearCarillon, countNotifications } from "./carillon.ts";

const COPY_BOTH = `begin;
copy carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request) from stdin;
copy carillon.ready (priority, seq, tenant, id) from stdin;
commit`;

const TENANT = 1;
const NORMAL = rankOf.normal;

export function copyAdapter(databaseUrl: string): Adapter<BulkProducer> {
  return {
    name: "COPY",
    settings: "begin, COPY notifications, COPY ready, commit in one simple query; rows prepared beforehand",
    async clear() {
      await clearCarillon(databaseUrl);
    },
    async open() {
      await migrate(databaseUrl);
      const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
      const newId = createIds();
      return {
        batch(from, size) {
          const texts = rowsOf(from, size, newId);
          return async () => {
            const client = await pool.connect();
            await copy(client, texts).finally(() => client.release());
          };
        },
        close: () => pool.end(),
      };
    },
    stored: () => countNotifications(databaseUrl),
    remaining: () => countNotifications(databaseUrl),
  };
}

function rowsOf(from: number, size: number, newId: () => string): Buffer[] {
  const acceptedAt = new Date().toISOString();
  let notifications = "";
  let ready = "";
  for (let i = from; i < from + size; i++) {
    const id = newId();
    const request = JSON.stringify(notification(i)).replaceAll("\\", "\\\\");
    notifications += `${TENANT}\t${id}\t${i}\temail\t${NORMAL}\t\\N\t${acceptedAt}\t\\N\t\\N\t${request}\n`;
    ready += `${NORMAL}\t${i}\t${TENANT}\t${id}\n`;
  }
  return [Buffer.from(notifications), Buffer.from(ready)];
}

/** @types/pg does not know these two. */
type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void };

/** What pg calls on whatever it is given to submit. */
function copy(client: pg.PoolClient, texts: readonly Buffer[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const unsent = texts.values();
    client.query({
      submit: (connection: pg.Connection) => connection.query(COPY_BOTH),
      handleCopyInResponse(connection: CopyConnection) {
        connection.sendCopyFromChunk(unsent.next().value as Buffer);
        connection.endCopyFrom();
      },
      handleCommandComplete() {},
      handleError: reject,
      handleReadyForQuery: () => resolve(),
    } as pg.Submittable);
  });
}
