// Facts as a sink is told them, and a ClickHouse to ask for them.

import type { Fact, FactDetail, FactType } from "#domain/fact.ts";
import { toldBody } from "#domain/fact-body.ts";
import { createIds } from "#domain/ids.ts";
import type { Told } from "#sinks/sink.ts";
import { startClickHouse } from "../support/servers/clickhouse.ts";

const makeId = createIds();

const SAID_NOTHING: FactDetail = {
  event: null,
  from: null,
  to: null,
  attempt: null,
  provider: null,
  outcome: null,
  error: null,
  latencyMs: null,
  cost: null,
  detail: null,
  channel: null,
  priority: null,
  userId: null,
  acceptedAt: null,
};

export type Telling = Partial<FactDetail> & {
  type?: FactType;
  at?: Date;
  id?: string;
  number?: number;
  tenant?: string;
};

export function tell(telling: Telling = {}): Told {
  const { type = "accepted", at = new Date(), id = makeId(), number = 0, tenant = "acme", ...detail } = telling;
  const position = { epoch: 1, key: 1, seq: 1, ordinal: 0 };
  const fact: Fact = { position, type, at, tenant: 1, notificationId: id, number };
  return { fact, tenant, body: toldBody(fact, { ...SAID_NOTHING, ...detail }) };
}

export const soon = (): AbortSignal => AbortSignal.timeout(60_000);

/** Rows of a question. */
export async function askClickHouse<Row = { [name: string]: unknown }>(url: string, sql: string): Promise<Row[]> {
  const answer = await fetch(`${url}/?output_format_json_quote_64bit_integers=0`, {
    method: "POST",
    body: `${sql} format JSON`,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return JSON.parse(text).data;
}

export async function runClickHouse(url: string, sql: string): Promise<void> {
  const answer = await fetch(url, { method: "POST", body: sql });
  const text = await answer.text();
  if (text !== "") throw new Error(text);
}

/** TEST_CLICKHOUSE_URL is another server to use, such as a current one. What kills servers is then left out. */
export async function clickHouseForTests() {
  const url = process.env.TEST_CLICKHOUSE_URL;
  return url === undefined ? startClickHouse() : { url, stop: async () => {} };
}
