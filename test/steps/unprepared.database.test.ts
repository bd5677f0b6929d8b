// What is looked up about a claim before any of it is sent, and what happens when that cannot be done.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUILT_IN, DEFAULT_ROUTES } from "#config/channels.ts";
import { startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const LOOKED_UP = ["suppressions", "devices"];

test("a claim of which neither look-up can be made is handed back, and sent as it should be once both can", async () => {
  const service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: { ...BUILT_IN, good: { type: "test" } },
    routes: { ...DEFAULT_ROUTES, email: "good", push: "good" },
  });
  try {
    const handedBack = () => service.db.query("select from carillon.ready where attempt = 0");
    assert.equal((await service.ask("PUT", "/v1/suppressions/off@example.com", {})).status, 200);
    for (const table of LOOKED_UP) await service.db.query(`alter table carillon.${table} rename to ${table}_away`);
    const content = { subject: "s", textBody: "t", body: "b" };
    const { body } = await service.ask("POST", "/v1/notifications/batch", {
      notifications: [
        { channel: "email", recipient: { email: "off@example.com" }, content },
        { channel: "email", recipient: { email: "on@example.com" }, content },
        { channel: "push", recipient: { deviceTokens: ["t"] }, content },
      ],
    });
    const ids = body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
    const { rows } = await service.db.query<{ seq: string }>("select last_value as seq from carillon.lease_token");
    // Claimed, handed back, claimed again.
    await until(async () => {
      const { rows: now } = await service.db.query<{ n: number }>(
        "select (last_value - $1)::int as n from carillon.lease_token",
        [rows[0]?.seq],
      );
      return (now[0]?.n ?? 0) >= 2 ? true : undefined;
    });
    await until(async () => ((await handedBack()).rowCount === 3 ? true : undefined));
    for (const table of LOOKED_UP) await service.db.query(`alter table carillon.${table}_away rename to ${table}`);
    const statuses = await until(async () => {
      const found = await Promise.all(
        ids.map(async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body.status),
      );
      return found.every((status) => !["queued", "processing"].includes(status)) ? found : undefined;
    });
    assert.deepEqual(statuses, ["suppressed", "sent", "sent"]);
  } finally {
    await service.stop();
  }
});

test("what cannot be read before a send is never taken for sent: even a notification that must not go out twice is tried again", async () => {
  const service = await startService({ roles: ["api", "worker", "scheduler"] });
  try {
    const template = { channel: "console", name: "t", content: { body: "Hello" } };
    assert.equal((await service.ask("PUT", "/v1/templates/t", template)).status, 200);
    await service.db.query("alter table carillon.template_versions rename to versions_away");
    const { body } = await service.ask("POST", "/v1/notifications", {
      channel: "console",
      content: { templateId: "t" },
      onAmbiguous: "hold",
    });
    const read = async () => (await service.ask("GET", `/v1/notifications/${body.notificationId}`)).body;
    const { events } = await until(async () => {
      const seen = await read();
      return seen.events.some(({ type }: { type: string }) => type === "attempt") ? seen : undefined;
    });
    const attempt = events.find(({ type }: { type: string }) => type === "attempt");
    assert.deepEqual([attempt.outcome, attempt.to], ["unavailable", "pending"]);
    await service.db.query("alter table carillon.versions_away rename to template_versions");
    await until(async () => ((await read()).status === "sent" ? true : undefined));
  } finally {
    await service.stop();
  }
});
