// What providers report about messages they accepted.

import type { Report } from "../domain/report.ts";
import type { Queryable } from "./database.ts";

/** Keeps them; one that came before is not kept twice. */
export async function keepReports(db: Queryable, provider: string, reports: readonly Report[]): Promise<number> {
  const rows = reports.map(({ receipt, reportId, kind, at, suppress, reason, code }) => ({
    receipt,
    report_id: reportId,
    kind,
    at,
    reason: reason?.slice(0, 1000),
    code,
    suppress: suppress?.address,
    why: suppress?.why,
  }));
  const { rowCount } = await db.query(
    `insert into carillon.reports (provider, receipt, report_id, kind, at, reason, code, suppress, why)
     select distinct on (report_id) $1, receipt, report_id, kind, at, reason, code, suppress, why
     from json_to_recordset($2) as x(receipt text, report_id text, kind text, at timestamptz, reason text, code text,
       suppress text, why text)
     on conflict do nothing`,
    [provider, JSON.stringify(rows)],
  );
  return rowCount ?? 0;
}

/** Moves notifications by the reports whose receipts are known; returns how many it applied. */
export async function applyReports(db: Queryable, limit: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>("select carillon.apply_reports($1) as n", [limit]);
  return rows[0]?.n ?? 0;
}

/** Orphans are kept for a day: a report may outrun our commit, but not for longer. The rest goes with the retention. */
export async function forgetReports(db: Queryable, days: number, batch: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with orphans as (
       delete from carillon.reports where ctid = any (array(select ctid from carillon.reports
         where applied_at is null and received_at <= now() - interval '1 day' limit $2 for update skip locked)) returning 1
     ), old as (
       delete from carillon.reports where ctid = any (array(select ctid from carillon.reports
         where applied_at <= now() - $1 * interval '1 day' limit $2 for update skip locked)) returning 1
     ), receipts as (
       delete from carillon.receipts where ctid = any (array(select ctid from carillon.receipts
         where at <= now() - $1 * interval '1 day' limit $2 for update skip locked)) returning 1
     )
     select greatest((select count(*) from orphans), (select count(*) from old), (select count(*) from receipts))::int as n`,
    [days, batch],
  );
  return rows[0]?.n ?? 0;
}
