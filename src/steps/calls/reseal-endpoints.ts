// Seals endpoints' secrets again with the first of the keys, so that the others can be taken away once every replica was started with it.

import { resealed } from "#domain/endpoint.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listSeals, putSeals, type Seals } from "#store/endpoints.ts";

const PAGE = 1_000;

/** What none of the keys opens is left as it is. */
export async function resealEndpoints(db: Queryable, keys: SecretKeys): Promise<void> {
  const again = (row: Seals, sealed: string) => resealed(keys, row, sealed) ?? sealed;
  let after = { tenant: 0, id: "" };
  for (;;) {
    const rows = await listSeals(db, after, PAGE);
    for (const row of rows) {
      const sealed = again(row, row.sealed);
      const previousSealed = row.previousSealed === null ? null : again(row, row.previousSealed);
      if (sealed !== row.sealed || previousSealed !== row.previousSealed)
        await putSeals(db, row, { ...row, sealed, previousSealed });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = last;
  }
}
