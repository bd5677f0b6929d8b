// Pages of requests are bounded by bytes as well as by rows: 200 of the largest would be 50 MB, for whoever may read.

/** A page ends with the request that reaches this; so it has at least one. */
const MOST_BYTES = 4 * 1024 * 1024;

/** What a request comes to. One that PostgreSQL compressed says how long it is only when it is unpacked. */
export const bytesOf = (request: string): string =>
  `case when pg_column_compression(${request}) is null then pg_column_size(${request}) else octet_length(${request}::text) end`;

/** Those of `rows`, each with an id and its bytes, that fit onto a page: the newest. */
export const fitting = (rows: string): string => `(
  select * from (
    select *, sum(bytes) over (order by id desc rows between unbounded preceding and 1 preceding) as before from ${rows}
  ) summed where coalesce(before, 0) < ${MOST_BYTES})`;
