// What happened a moment ago: a tenant's facts that the feed has and the tallies do not. Read in one statement with those, it makes them exact.

import { LAST_ID, TALLIES } from "./tallies.ts";

/** Rows of the feed that nobody has counted yet: some seconds' worth. */
const MOST_ROWS = 2_000;
const MOST_FACTS = 20_000;

/** For `with`, of the tenant $1: `lately` has the facts, none where `bounds` says that there are too many to look at. */
export const LATELY = `
  rows as materialized (
    select tenants, ids, numbers, size from carillon.untallied limit ${MOST_ROWS + 1}
  ), bounds as materialized (
    select count(*) > ${MOST_ROWS} or coalesce(sum(size), 0) > ${MOST_FACTS} as is_behind from rows
  ), lately as materialized (
    select x.id, coalesce(x.number, 0) as number from rows r cross join lateral unnest(r.tenants, r.ids, r.numbers) as x(tenant, id, number)
    where not (select is_behind from bounds) and $1 = any (r.tenants) and coalesce(x.tenant, r.tenants[1]) = $1
  )`;

/** Somebody counts, and all that was there before is counted. */
export const IS_COUNTED = `(select t.id = '${LAST_ID}' from carillon.tallied t) and exists (select from carillon.followers where name = '${TALLIES}')`;
