// Pages of requests are bounded by bytes as well as by rows: 200 of the largest would be 50 MB, for whoever may read.

/** A page ends with the request that reaches this; so it has at least one. */
export const MOST_BYTES = 4 * 1024 * 1024;

/** Those of `rows`, each with an id and its bytes, that fit onto a page: the newest. */
export const fitting = (rows: string): string => `(
  select * from (
    select *, sum(bytes) over (order by id desc rows between unbounded preceding and 1 preceding) as before from ${rows}
  ) summed where coalesce(before, 0) < ${MOST_BYTES})`;
