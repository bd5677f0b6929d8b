// Facts to tell: a feed with so many, and whoever follows it to its end.

import { createCarillon } from "../src/index.ts";
import type { Sink } from "../src/sinks/sink.ts";
import { followerOf, SinkFeeder } from "../src/steps/brokers/feed-sink.ts";
import { openDatabase } from "../src/store/connection/database.ts";
import { clearCarillon } from "./adapters/carillon.ts";
import { inBatches } from "./drain.ts";
import { notification } from "./payload.ts";
import type { World } from "./scenario.ts";
import { runSql, settleStore } from "./sql.ts";

const NAME = "bench";
const never = new AbortController().signal;

/** Two for each notification: it was accepted, and sent, a thousand of them by each statement. */
const SENT = `do $$
declare
  last uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    ids := array(select id from carillon.notifications where tenant = 1 and id > last order by id limit 1000);
    exit when cardinality(ids) = 0;
    insert into carillon.events
      (notification_id, tenant, type, from_status, to_status, attempt, outcome, provider, latency_ms, cost, detail)
    select id, 1, 'attempt', 'processing', 'sent', 1, 'accepted', 'ses', 12.5, 0.0001,
      json_build_object('receipt', '0102018c-7b2f-4b8a-8d44-' || id) from unnest(ids) as id;
    last := ids[cardinality(ids)];
    commit;
  end loop;
end $$`;

export async function fillFacts({ databaseUrl }: World, facts: number): Promise<void> {
  await clearCarillon(databaseUrl);
  const carillon = createCarillon({ databaseUrl });
  await inBatches(facts / 2, (from, size) =>
    carillon.sendBatch(Array.from({ length: size }, (_, n) => notification(from + n))),
  );
  await carillon.close();
  await runSql(databaseUrl, SENT);
  await settleStore(databaseUrl);
}

/** From the first one on, page by page, until so many were carried. */
export async function feedFacts({ databaseUrl }: World, sink: Sink, facts: number): Promise<void> {
  await runSql(databaseUrl, `delete from carillon.followers where name = '${followerOf(NAME)}'`);
  const database = openDatabase({ url: databaseUrl, acceptConnections: 1, connections: 1, onError: () => {} });
  const feeder = new SinkFeeder({
    pool: database.own,
    name: NAME,
    sink,
    types: undefined,
    holder: "bench",
    monotonic: () => performance.now(),
    onMissed: (reason) => {
      throw new Error(reason);
    },
  });
  let carried = 0;
  while (carried < facts) {
    const round = await feeder.round(never);
    if ("carried" in round) carried += round.carried;
  }
  await feeder.resign();
  await database.close();
}
