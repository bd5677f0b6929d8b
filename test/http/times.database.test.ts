// Times in answers are written in one way, whoever wrote them down.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, email, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

test("every time in a record is in milliseconds and UTC", async (t) => {
  const service = await startService({ roles: ["api", "worker"] });
  t.after(() => service.stop());
  const send = async (request: object): Promise<string> =>
    (await service.ask("POST", "/v1/notifications", request)).body.notificationId;
  const item = await send({ channel: "inbox", recipient: { userId: "ada" }, content: { title: "Hi" } });
  await until(async () => (await ask(service, `/v1/notifications/${item}`)).status === "sent" || undefined);
  await service.ask("POST", "/v1/inbox/ada/ack", { ids: [item] });
  await until(async () => (await ask(service, `/v1/notifications/${item}`)).status === "delivered" || undefined);
  const moved = await send({ ...email(), scheduledFor: "2127-01-01T00:00:00Z" });
  const change = { scheduledFor: "2127-01-02T02:00:00+02:00", expiresAt: "2127-01-03T00:00:00Z" };
  assert.equal((await service.ask("PATCH", `/v1/notifications/${moved}`, change)).status, 200);
  for (const id of [item, moved]) {
    const times = JSON.stringify(await ask(service, `/v1/notifications/${id}`)).match(/"\d{4}-\d\d-\d\dT[^"]*"/g) ?? [];
    assert.ok(times.length > 3, "the record tells times");
    for (const time of times) assert.match(time, /^"[-\d]{10}T[:\d]{8}\.\d{3}Z"$/);
  }
});
