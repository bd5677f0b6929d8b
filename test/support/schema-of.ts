// Everything that a schema consists of, as lines of text that two databases can be compared by.
//
// By the catalogs, since the packaged server comes without pg_dump. Names of what PostgreSQL names itself are left out where they say
// nothing: constraints "not null", which versions before 18 do not name at all, and the indexes of partitions. So is what PostgreSQL notes for
// itself: since its update of November 2026 a version of each column (15.20, `pg_attver`).

import type pg from "pg";

const SECTIONS: { [name: string]: string } = {
  relations: `select c.relname, c.relkind, c.relpersistence, c.relispartition, c.reloptions, t.reloptions as toast, c.relreplident,
      c.relrowsecurity, c.relacl, pg_get_partkeydef(c.oid) as cut_by, pg_get_expr(c.relpartbound, c.oid) as holds
    from pg_class c left join pg_class t on t.oid = c.reltoastrelid
    where c.relnamespace = 'carillon'::regnamespace and c.relkind not in ('i', 'I')`,
  columns: `select c.relname, row_number() over (partition by c.oid order by a.attnum) as place, a.attname,
      format_type(a.atttypid, a.atttypmod) as type, a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, a.attcompression,
      array(select o from unnest(a.attoptions) o where o not like 'pg_attver=%') as options, a.attstattarget, a.attacl, pg_get_expr(d.adbin, d.adrelid) as value
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'carillon'::regnamespace and c.relkind not in ('i', 'I')`,
  // Of a new database there is nothing that was not checked: there the same constraint is valid.
  constraints: `select c.conrelid::regclass::text as of, c.conname, c.contype, c.condeferrable,
      regexp_replace(pg_get_constraintdef(c.oid), ' NOT VALID$', '') as rule
    from pg_constraint c where c.connamespace = 'carillon'::regnamespace and c.contype <> 'n'
      and not exists (select from pg_class p where p.oid = c.conrelid and p.relispartition)`,
  indexes: `select i.indrelid::regclass::text as of, case when not t.relispartition then c.relname end as name, c.reloptions,
      regexp_replace(pg_get_indexdef(i.indexrelid), 'INDEX \\S+ ON', 'INDEX ON') as made
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
    where c.relnamespace = 'carillon'::regnamespace`,
  functions: `select p.oid::regprocedure::text as name, pg_get_functiondef(p.oid) as made, p.proacl
    from pg_proc p where p.pronamespace = 'carillon'::regnamespace`,
  views: `select c.relname, pg_get_viewdef(c.oid) as made from pg_class c
    where c.relnamespace = 'carillon'::regnamespace and c.relkind in ('v', 'm')`,
  triggers: `select t.tgname, t.tgenabled, pg_get_triggerdef(t.oid) as made from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'carillon'::regnamespace and not t.tgisinternal`,
  sequences: `select s.seqrelid::regclass::text as name, format_type(s.seqtypid, null) as type, s.seqstart, s.seqincrement, s.seqmax,
      s.seqmin, s.seqcache, s.seqcycle, pg_sequence_last_value(s.seqrelid) as reached
    from pg_sequence s join pg_class c on c.oid = s.seqrelid where c.relnamespace = 'carillon'::regnamespace`,
  types: `select t.typname, t.typtype, array(select e.enumlabel from pg_enum e where e.enumtypid = t.oid order by e.enumsortorder)
      as labels from pg_type t where t.typnamespace = 'carillon'::regnamespace and t.typtype <> 'c' and t.typelem = 0`,
  comments: `select coalesce(c.relname, p.proname::text, d.objoid::text) as of, d.objsubid, d.description from pg_description d
    left join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass
    left join pg_proc p on p.oid = d.objoid and d.classoid = 'pg_proc'::regclass
    where 'carillon'::regnamespace in (c.relnamespace, p.pronamespace)`,
  others: `select (select count(*) from pg_policy) as policies, (select count(*) from pg_event_trigger) as event_triggers,
      (select nspacl from pg_namespace where nspname = 'carillon') as rights, (select count(*) from pg_statistic_ext) as statistics,
      (select count(*) from pg_rewrite r join pg_class c on c.oid = r.ev_class
       where c.relnamespace = 'carillon'::regnamespace and r.rulename <> '_RETURN') as rules`,
};

/** Each line begins with its section. */
export async function schemaOf(db: Pick<pg.Client, "query">): Promise<string[]> {
  const lines: string[] = [];
  for (const [section, sql] of Object.entries(SECTIONS)) {
    const { rows } = await db.query<{ line: string }>(`select to_json(x)::text as line from (${sql}) x`);
    lines.push(...rows.map(({ line }) => `${section}: ${line}`));
  }
  return [...lines, ...(await rowsOf(db))].sort();
}

/** What is in the tables of a database that nobody has used yet, but for when it was written. */
async function rowsOf(db: Pick<pg.Client, "query">): Promise<string[]> {
  const { rows: tables } = await db.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const lines: string[] = [];
  for (const { name } of tables) {
    const { rows } = await db.query<{ line: string }>(
      `select (to_jsonb(x) - 'created_at' - 'applied_at')::text as line from carillon.${name} x`,
    );
    lines.push(...rows.map(({ line }) => `row of ${name}: ${line}`));
  }
  return lines;
}
