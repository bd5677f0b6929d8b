// How large a stored request is, in SQL.

/** One that PostgreSQL compressed says how long it is only when it is unpacked. */
export const bytesOf = (request: string): string =>
  `case when pg_column_compression(${request}) is null then pg_column_size(${request}) else octet_length(${request}::text) end`;
