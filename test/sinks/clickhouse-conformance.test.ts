// What every sink must do, by a real ClickHouse.

import { randomUUID } from "node:crypto";
import type { FactBody } from "#domain/fact-body.ts";
import { openClickHouse } from "#sinks/clickhouse.ts";
import { type Arrived, sinkConformance } from "../conformance/sink.ts";
import { NO_CLICKHOUSE, startClickHouse } from "../support/servers/clickhouse.ts";
import { tell } from "../support/told.ts";
import { askClickHouse } from "./clickhouse-facts.ts";

/** A table has no order of arrival: its facts are numbered. Cost is as exact as the record keeps it. */
const ARRIVED = `select id, type, at_ms, notification_id as "notificationId", event, from_status as "from", to_status as "to", attempt, provider, outcome,
  latency_ms as "latencyMs", round(cost, 6) as cost, channel, priority, user_id as "userId", accepted_ms, tenant from`;

type Row = FactBody & { tenant: string; at_ms: number; accepted_ms: number };

sinkConformance("clickhouse", NO_CLICKHOUSE, async () => {
  const server = await startClickHouse();
  if (server === undefined) return undefined;
  const { url } = server;
  return {
    server,
    async open() {
      const database = `to_${randomUUID().replaceAll("-", "")}`;
      const sink = await openClickHouse({ type: "clickhouse", url, database, users: true }, "analytics");
      return {
        sink,
        async arrived() {
          const rows = await askClickHouse<Row>(url, `${ARRIVED} ${database}.facts order by number`);
          return rows.map(({ tenant, at_ms, accepted_ms, ...row }): Arrived => {
            const instants = { at: new Date(at_ms).toISOString(), acceptedAt: new Date(accepted_ms).toISOString() };
            // Of the detail it keeps two words alone.
            return { id: row.id, tenant, body: { ...row, ...instants, detail: {} } };
          });
        },
      };
    },
    openWith: (password) => openClickHouse({ type: "clickhouse", url, user: "default", password }, "analytics"),
    refusable: { told: () => tell({ notificationId: "no uuid" }), error: /^ClickHouse: .+ \(code \d+\)$/ },
    stop: server.stop,
  };
});
