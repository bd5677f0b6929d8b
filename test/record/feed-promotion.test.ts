// A standby takes over: what it has of the feed is told to its end, and a new epoch begins.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openDatabase } from "#store/connection/database.ts";
import { accept, follow, makeId, namesOf } from "../support/feed.ts";
import { inReverse } from "../support/in-reverse.ts";
import { replicatedServers } from "../support/replicated.ts";
import { startService } from "../support/service.ts";
import { until } from "../support/until.ts";

test("a promoted standby begins an epoch, from its first row on", async (context) => {
  const t = inReverse(context);
  const servers = await replicatedServers(t);
  const service = await startService({ databaseUrl: servers.url });
  t.after(service.stop);
  const { small: db, close } = openDatabase({
    url: servers.url,
    acceptConnections: 1,
    connections: 2,
    onError: () => {},
  });
  t.after(close);
  const [a, b, c] = [makeId(), makeId(), makeId()];
  await accept(db, [a, b]);
  const before = await until(async () => {
    const { body } = await service.ask("GET", "/v1/events?limit=1");
    return body.data.length > 0 ? body : undefined;
  });
  const { facts, next } = await follow(db, { limit: 10, least: 2 });
  assert.equal(facts.length, 2);

  servers.first.kill();
  await servers.promote();
  await until(
    () =>
      accept(db, [c])
        .then(() => true)
        .catch(() => undefined),
    60_000,
  );
  const half = facts[0]?.position ?? next;
  const told = await follow(db, { after: half, limit: 1, least: 2 });
  assert.deepEqual(namesOf(told.facts), [`accepted ${b}:0`, `accepted ${c}:0`]);
  assert.ok(told.next.epoch > next.epoch);

  const { status, body } = await service.ask("GET", `/v1/events?after=${before.next}`);
  assert.deepEqual([status, body.code, body.next], [410, "RESET", `${told.next.epoch}:0:0:0`]);
  const again = await service.ask("GET", `/v1/events?after=${body.next}`);
  assert.deepEqual(
    again.body.data.map(({ id }: { id: string }) => id),
    [`${c}:0`],
  );
});
