// The whole service with one sink on a real server: what the feed has, arrives, whatever happens to the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FactType } from "#domain/fact.ts";
import type { SinkSettings } from "#sinks/settings.ts";
import { keptAhead } from "../support/planned.ts";
import type { Server } from "../support/servers/server.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Arrived, assertInOrder } from "./sink.ts";

export type ServiceUnderTest = {
  server: Server;
  /** To a place of its own. */
  place(types?: FactType[]): Promise<{ settings: SinkSettings; arrived(): Promise<readonly Arrived[]> }>;
};

/** On machines with every core busy; a sink that failed often waits for half a minute. */
const LONG_MS = 240_000;
const ROLES = ["api", "worker", "keeper", "scheduler", "sink"] as const;

export function killedServerConformance(name: string, skip: string | false, under: () => ServiceUnderTest): void {
  test(`${name}: through kill -9 of the server every fact arrives, in order for each notification`, {
    skip,
  }, async (t) => {
    const { server, place } = under();
    const { settings, arrived } = await place();
    const service = await startService({ roles: [...ROLES], sinks: { all: settings } });
    t.after(service.stop);
    await send(service, 2);
    await until(async () => (await arrived()).length > 0 || undefined, LONG_MS);
    const killed = server.kill();
    await send(service, 2);
    await killed;
    await server.restart();
    await send(service, 2);
    const told = await toldOnceAllWasSent(service, 600);
    assert.ok(told.length >= 1_200, `${told.length} facts`);
    await until(async () => new Set((await arrived()).map(({ id }) => id)).size >= told.length || undefined, LONG_MS);
    assertInOrder(await arrived(), told);
    const { rows } = await service.db.query("select refused::int from carillon.connectors");
    assert.deepEqual(rows, [{ refused: 0 }]);
  });
}

export function reminderConformance(name: string, skip: string | false, under: () => ServiceUnderTest): void {
  test(`${name}: reminder.due alone where that is asked for, with the reminder's own data`, { skip }, async (t) => {
    const { settings, arrived } = await under().place(["reminder.due"]);
    const service = await startService({ roles: [...ROLES], sinks: { reminders: settings } });
    t.after(service.stop);
    await send(service, 1);
    const notification = { channel: "console", content: { title: "Game night", body: "at {{ at }}" } };
    const at = await keptAhead({ leadMs: 2_000, beforeMs: 3_000 }, async (at) => {
      const { body } = await service.ask("PUT", "/v1/reminders/game-night", { at, before: ["PT3S"], notification });
      return body;
    });
    const [due, ...others] = await until(async () => {
      const found = await arrived();
      return found.length > 0 ? found : undefined;
    }, LONG_MS);
    assert.deepEqual(others, []);
    assert.equal(due?.body.type, "reminder.due");
    assert.deepEqual(due?.body.detail, { key: "game-night", at, before: "PT3S" });
    const { body } = await service.ask("GET", "/v1/reminders/game-night");
    assert.deepEqual(body.plan[0].notificationIds, [due?.body.notificationId]);
  });
}

/** So many times a hundred. */
async function send(service: Service, hundreds: number): Promise<void> {
  for (let n = 0; n < hundreds; n++) {
    const notifications = Array.from({ length: 100 }, () => ({ channel: "console", content: { body: "Hello" } }));
    const { status } = await service.ask("POST", "/v1/notifications/batch", { notifications });
    assert.equal(status, 200);
  }
}

/** What the feed has. */
async function toldOnceAllWasSent(service: Service, sent: number): Promise<{ body: { id: string } }[]> {
  await until(async () => {
    const { rows } = await service.db.query("select count(*)::int as n from carillon.events where to_status = 'sent'");
    return rows[0].n >= sent || undefined;
  }, LONG_MS);
  const { rows } = await service.db.query(
    `select x.id, coalesce(x.number, 0)::int as number
     from carillon.feed f cross join lateral unnest(f.ids, f.numbers) as x(id, number)`,
  );
  return rows.map(({ id, number }) => ({ body: { id: `${id}:${number}` } }));
}
