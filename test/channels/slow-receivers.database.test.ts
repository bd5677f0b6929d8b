// A receiver that is slow gets everything once: what waits for its turn here is neither given up half-way nor in doubt.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: { hooks: { type: "webhook" } },
    routes: { webhook: "hooks" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
    concurrency: 200,
    sendTimeoutMs: 2_000,
  });
});
after(() => service.stop());

async function send(url: string, count: number, onAmbiguous: string): Promise<string[]> {
  const notification = { channel: "webhook", recipient: { webhookUrl: url }, content: { body: "b" }, onAmbiguous };
  const notifications = Array.from({ length: count }, () => notification);
  const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications });
  return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
}

test("a host that answers each within its time gets each once, however many wait for it", async (t) => {
  const hosts = await Promise.all([startStandIn(), startStandIn()]);
  t.after(() => Promise.all(hosts.map((host) => host.close())));
  // Sixteen at a time make 27 a second: at the end of the line one waits for longer than a send may take.
  for (const host of hosts) host.answer({ status: 200, delayMs: 600 });
  const [resend, hold] = hosts;
  const ids = [...(await send(`${resend?.url}/hook`, 60, "resend")), ...(await send(`${hold?.url}/hook`, 60, "hold"))];
  const outcomes = await until(async () => {
    const { rows } = await service.db.query<{ outcome: string; sends: number }>(
      "select outcome, count(*)::int as sends from carillon.events where type = 'attempt' group by 1",
    );
    return rows.reduce((all, { sends }) => all + sends, 0) >= ids.length ? rows : undefined;
  }, 60_000);
  assert.deepEqual(outcomes, [{ outcome: "accepted", sends: ids.length }]);
  const arrived = hosts.flatMap(({ received }) => received.map(({ headers }) => headers["webhook-id"]));
  assert.deepEqual(arrived.sort(), ids.sort(), "each arrived once");
});
