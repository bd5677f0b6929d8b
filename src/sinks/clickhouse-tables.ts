// The tables in ClickHouse: made and brought up to date by us, before the first delivery and after each that failed.
//
// `facts_rows` has a row for each fact that was sent. It replaces rows of the same key when it merges, so that a fact that comes twice is there once;
// until then the view `facts`, which is what people ask, shows one of them, the latest. `facts_version` says how far we have brought them: a newer
// release adds columns, an older one beside it goes on with those that it knows.
//
// Every statement may be run again, and by two at once. What somebody else changed is named, and nothing is sent until that is settled.

import { type ClickHouse, ClickHouseError } from "./clickhouse-http.ts";
import { COLUMNS, type Column, type Dialect } from "./clickhouse-rows.ts";

export type Tables = { database: string; table: string; days?: number; columns?: readonly Column[] };
/** What an insert has to know. */
export type Prepared = { insert: string; settings: { readonly [name: string]: string } };

/** By these rows are the same. The questions of docs/analytics.md are about a tenant and a time; the rest makes it one fact. */
const KEY = "tenant, toStartOfHour(at), notification_id, number, type";

/**
 * Whatever the profile of our user says: no answer before the rows are written, no row passed over in silence, no insert taken for a repetition of one
 * that was dropped since, and a back-fill may have more days than a hundred.
 */
const SETTINGS: { readonly [name: string]: string } = {
  async_insert: "0",
  input_format_allow_errors_num: "0",
  input_format_allow_errors_ratio: "0",
  insert_deduplicate: "0",
  max_partitions_per_insert_block: "0",
};

/** Of things that another has made meanwhile: column, table, database. */
const EXISTS: readonly number[] = [15, 44, 57, 82];

export async function prepareTables(server: ClickHouse, tables: Tables, signal: AbortSignal): Promise<Prepared> {
  const { database, table, columns = COLUMNS, days } = tables;
  const [view, rows, versions] = [`${database}.${table}`, `${database}.${table}_rows`, `${database}.${table}_version`];
  const list = (sql: string) => server.list({ sql, signal });
  const run = (sql: string) => server.run({ sql, signal }).catch(unlessThere);
  // Looked for first: whoever may only insert may not even ask to make what is there.
  const find = async () => {
    const found = await list(
      `select concat(database, '.', name), engine, sorting_key, engine_full from system.tables where database = '${database}'`,
    );
    return new Map(found.map(([name = "", engine = "", key = "", full = ""]) => [name, { engine, key, full }]));
  };

  const [[version = ""] = []] = await list("select version()");
  const dialect: Dialect = Number.parseInt(version, 10) >= 21 ? "modern" : "plain";
  const [[databases] = []] = await list(`select count() from system.databases where name = '${database}'`);
  if (databases === "0") await run(`create database if not exists ${database}`);
  let found = await find();
  if (!found.has(versions))
    await run(
      `create table if not exists ${versions} (version UInt32, at DateTime) engine = ReplacingMergeTree order by version`,
    );
  const [[made = "0"] = []] = await list(`select max(version) from ${versions}`);
  const newest = Math.max(...columns.map(({ since }) => since));
  if (Number(made) < newest) {
    const engine = found.get(view)?.engine;
    if (engine !== undefined && engine !== "View")
      throw new Error(`${view} is a table of somebody else's; give another name`);
    await migrate(run, { rows, view, columns, dialect, made: Number(made), days }, await typesIn(list, rows));
    await run(`insert into ${versions} values (${newest}, now())`);
    found = await find();
  }
  check(rows, found.get(rows), columns, await typesIn(list, rows));
  if (!found.has(view)) await run(viewOf("view if not exists", { view, rows, columns, dialect }));
  if (dialect === "modern" && days !== undefined && !found.get(rows)?.full.includes(ttlOf(days)))
    await run(`alter table ${rows} modify ${ttlOf(days)}`);

  const known = await list(`select name from system.settings where name in ('${Object.keys(SETTINGS).join("', '")}')`);
  const names = columns.flatMap(({ name, value }) => (value ? [name] : []));
  return {
    insert: `insert into ${rows} (${names.join(", ")}) format TabSeparated`,
    settings: Object.fromEntries(known.map(([name = ""]) => [name, SETTINGS[name] ?? ""])),
  };
}

type Migration = {
  rows: string;
  view: string;
  columns: readonly Column[];
  dialect: Dialect;
  /** 0: there is none. */
  made: number;
  days: number | undefined;
};
type Types = ReadonlyMap<string, string>;

async function typesIn(list: (sql: string) => Promise<string[][]>, rows: string): Promise<Types> {
  const found = await list(`select name, type from system.columns where concat(database, '.', table) = '${rows}'`);
  return new Map(found.map(([name = "", type = ""]) => [name, type]));
}

/** What is missing of the versions that are new; what is missing of older ones somebody has taken. */
async function migrate(run: (sql: string) => Promise<void>, asked: Migration, types: Types): Promise<void> {
  const { rows, view, columns, dialect, made, days } = asked;
  if (made === 0) await run(tableOf(rows, columns, dialect, days));
  else
    for (const column of columns.filter(({ name, since }) => since > made && !types.has(name)))
      await run(`alter table ${rows} add column ${definitionOf(column, dialect)}`);
  if (dialect === "plain") await run(`drop table if exists ${view}`);
  await run(viewOf(dialect === "plain" ? "view" : "or replace view", { view, rows, columns, dialect }));
}

function check(
  rows: string,
  table: { engine: string; key: string } | undefined,
  columns: readonly Column[],
  types: Types,
): void {
  const faults = columns.flatMap(({ name, type }) => {
    const found = types.get(name);
    const fitting = typeof type === "string" ? [type] : [type.modern, type.plain];
    if (found === undefined) return [`the column ${name} is gone`];
    return fitting.includes(found) ? [] : [`the column ${name} is ${found}, not ${fitting[0]}`];
  });
  if (!table) faults.splice(0, Infinity, "it is gone; drop the table of versions too, and it is made anew");
  else if (!table.engine.endsWith("ReplacingMergeTree")) faults.push(`its engine is ${table.engine}`);
  else if (table.key !== KEY) faults.push(`it is ordered by ${table.key}, not by ${KEY}`);
  if (faults.length > 0) throw new Error(`somebody has changed the table ${rows}: ${faults.join("; ")}`);
}

const typeOf = ({ type }: Column, dialect: Dialect): string => (typeof type === "string" ? type : type[dialect]);

const INSTANT: { [dialect in Dialect]: (ms: string) => string } = {
  modern: (ms) => `fromUnixTimestamp64Milli(${ms}, 'UTC')`,
  plain: (ms) => `toDateTime(intDiv(${ms}, 1000), 'UTC')`,
};

const definitionOf = (column: Column, dialect: Dialect): string =>
  `${column.name} ${typeOf(column, dialect)}${column.name === "at" ? ` materialized ${INSTANT[dialect]("at_ms")}` : ""}`;

/** As the server itself writes it. */
const ttlOf = (days: number): string => `TTL toDateTime(at) + toIntervalDay(${days})`;

const tableOf = (rows: string, columns: readonly Column[], dialect: Dialect, days: number | undefined): string =>
  `create table if not exists ${rows} (${columns.map((column) => definitionOf(column, dialect)).join(", ")})
   engine = ReplacingMergeTree partition by toYYYYMMDD(at) order by (${KEY})
   ${dialect === "modern" && days !== undefined ? `${ttlOf(days)} settings ttl_only_drop_parts = 1` : ""}`;

type View = Pick<Migration, "view" | "rows" | "columns" | "dialect">;

const viewOf = (how: string, { view, rows, columns, dialect }: View): string =>
  `create ${how} ${view} as
   select ${columns.map(({ name }) => name).join(", ")}, concat(toString(notification_id), ':', toString(number)) as id,
     ${INSTANT[dialect]("accepted_ms")} as accepted_at, at_ms - accepted_ms as waited_ms
   from ${rows} final`;

function unlessThere(error: unknown): void {
  if (!(error instanceof ClickHouseError && EXISTS.includes(error.code))) throw error;
}
