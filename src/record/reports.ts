// What providers report about messages they accepted.

import type { Report } from "#domain/report.ts";
import type { TraceContext } from "#domain/trace-context.ts";
import type { Queryable } from "#store/connection/database.ts";
import { lowered } from "#store/suppressions.ts";

/** The account whose signature reports bear: a provider's name, and the tenant whose own it is, or 0 for the deployment's. */
export type ReportingAccount = { provider: string; owner: number };

/**
 * Reports of messages that we do not know, of one account. Some outran our own commit; most are of mails that somebody else sent
 * with the same account, and no tenant may pile them up at will.
 */
const MOST_WAITING = 10_000;

/** Keeps them; one that came before is not kept twice. When too many wait, only those whose receipt is known are kept. */
export async function keepReports(
  db: Queryable,
  { provider, owner }: ReportingAccount,
  reports: readonly Report[],
): Promise<void> {
  const rows = reports.map(({ receipt, reportId, kind, at, address, suppress, reason, code }) => ({
    receipt,
    report_id: reportId,
    kind,
    at,
    address,
    reason,
    code,
    suppress: suppress && lowered(suppress.address),
    why: suppress?.why,
  }));
  await db.query(
    `insert into carillon.reports (provider, owner, receipt, report_id, kind, at, address, reason, code, suppress, why)
     select distinct on (report_id) $1, $2, receipt, report_id, kind, at, address, reason, code, suppress, why
     from json_to_recordset($3) as x(receipt text, report_id text, kind text, at timestamptz, address text, reason text, code text,
       suppress text, why text)
     where (select count(*) from (select from carillon.reports w
         where w.owner = $2 and w.provider = $1 and w.applied_at is null limit $4) waiting) < $4
       or exists (select from carillon.receipts r where r.provider = $1 and r.owner = $2 and r.receipt = x.receipt)
     on conflict do nothing`,
    [provider, owner, JSON.stringify(rows), MOST_WAITING],
  );
}

/** Moves notifications by those of these reports whose receipts are known. */
export async function applyReportsOf(
  db: Queryable,
  { provider, owner }: ReportingAccount,
  reports: readonly Report[],
): Promise<void> {
  const ids = reports.map(({ reportId }) => reportId);
  await db.query("select carillon.apply_reports_of($1, $2, $3)", [provider, owner, ids]);
}

/** A report about a notification that is part of a trace. */
export type TracedReport = { id: string; tenant: number; channel: string; kind: Report["kind"]; request: TraceContext };

/** Of these reports those that are about to be applied: one that comes twice is told once. */
export async function findTracedReports(
  db: Queryable,
  { provider, owner }: ReportingAccount,
  reports: readonly Report[],
): Promise<TracedReport[]> {
  const { rows } = await db.query<TracedReport>(
    `select n.id, n.tenant, n.channel, r.kind, json_strip_nulls(json_build_object('trace', n.request ->> 'trace',
       'traceparent', n.request ->> 'traceparent', 'tracestate', n.request ->> 'tracestate')) as request
     from carillon.reports r
     join carillon.receipts x on x.provider = r.provider and x.owner = r.owner and x.receipt = r.receipt
     join carillon.notifications n on n.tenant = x.tenant and n.id = x.notification_id
     where r.provider = $1 and r.owner = $2 and r.report_id = any ($3) and r.applied_at is null`,
    [provider, owner, reports.map(({ reportId }) => reportId)],
  );
  return rows;
}

/** Moves notifications by reports that came before their receipts were known; returns how many it applied. */
export async function applyReports(db: Queryable, limit: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>("select carillon.apply_reports($1) as n", [limit]);
  return rows[0]?.n ?? 0;
}

/** Orphans are kept for a day: a report may outrun our commit, but not for longer. The rest goes with the retention. */
export async function forgetReports(db: Queryable, days: number, batch: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with orphans as (
       delete from carillon.reports where ctid = any (array(select ctid from carillon.reports
         where applied_at is null and received_at <= carillon.now() - interval '1 day' limit $2 for update skip locked)) returning 1
     ), old as (
       delete from carillon.reports where ctid = any (array(select ctid from carillon.reports
         where applied_at <= carillon.now() - $1 * interval '1 day' limit $2 for update skip locked)) returning 1
     ), receipts as (
       delete from carillon.receipts where ctid = any (array(select ctid from carillon.receipts
         where at <= carillon.now() - $1 * interval '1 day' limit $2 for update skip locked)) returning 1
     )
     select greatest((select count(*) from orphans), (select count(*) from old), (select count(*) from receipts))::int as n`,
    [days, batch],
  );
  return rows[0]?.n ?? 0;
}
