// Facts into ClickHouse, for those who ask about many of them: docs/analytics.md.
//
// One insert for each page. What the answer to it was lost of comes again, and changes nothing: rows of the same key are one fact. Order does not
// matter to the table, so that a page that arrives late does no harm either.

import { ClickHouseError, createClickHouse } from "./clickhouse-http.ts";
import { COLUMNS, rowsBy } from "./clickhouse-rows.ts";
import { type Prepared, prepareTables } from "./clickhouse-tables.ts";
import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink, Refused, Told } from "./sink.ts";

/** Each insert is a part of the table, and merging parts is most of what inserting costs the server: with 10,000 it takes half as long again. */
const MOST = 20_000;

/** About rows: they cannot be read (6, 26, 27, 33, 38, 41, 72, 376, 675), do not fit (53, 69, 70, 321), or break a constraint of the table's (469, 117). */
const ABOUT_ROWS: readonly number[] = [6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 117, 321, 376, 469, 675];

export const openClickHouse: OpenSink<SettingsOfSink<"clickhouse">> = async (settings, name) => {
  const { url, user, password, database = "carillon", table = "facts", days, users = false, errors = false } = settings;
  // It may hold a password, so it is not repeated.
  if (!URL.canParse(url)) throw new Error(`sinks.${name}.url: expected a URL`);
  const server = createClickHouse({ url, ...(user && { user }), ...(password && { password }) });
  const tables = { database, table, ...(days && { days }) };
  const rowsOf = rowsBy(COLUMNS, { users, errors });
  let prepared: Prepared | undefined;

  const insert = (facts: readonly Told[], { insert: sql, settings }: Prepared, signal: AbortSignal) =>
    server.run({ sql, rows: rowsOf(facts), settings, signal });

  /** Half by half, until those are alone that are refused. */
  async function insertApart(facts: readonly Told[], into: Prepared, signal: AbortSignal): Promise<Refused[]> {
    try {
      await insert(facts, into, signal);
      return [];
    } catch (error) {
      if (!isAboutRows(error)) throw error;
      const [told] = facts;
      if (told && facts.length === 1) return [{ told, error: error.message }];
      const half = Math.ceil(facts.length / 2);
      const first = await insertApart(facts.slice(0, half), into, signal);
      return [...first, ...(await insertApart(facts.slice(half), into, signal))];
    }
  }

  return {
    most: MOST,
    async deliver(facts, signal) {
      if (facts.length === 0) return [];
      try {
        prepared ??= await prepareTables(server, tables, signal);
        await insert(facts, prepared, signal);
        return [];
      } catch (error) {
        prepared = undefined;
        if (!isAboutRows(error)) throw error;
        // Unless it is the table that has changed, which is said here.
        prepared = await prepareTables(server, tables, signal);
        return insertApart(facts, prepared, signal);
      }
    },
    close: () => server.close().catch(() => undefined),
  };
};

const isAboutRows = (error: unknown): error is ClickHouseError =>
  error instanceof ClickHouseError && ABOUT_ROWS.includes(error.code);
