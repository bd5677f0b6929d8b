// One tenant has very many callbacks for servers that never answer: nobody else's callbacks and notifications are later for it.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { acceptedRow } from "#domain/callback.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import { createIds } from "#domain/ids.ts";
import { ensureRequestsEndpoint } from "#store/requests-endpoint.ts";
import { type CallbackReceiver, startReceiver } from "../support/callback-receiver.ts";
import { SECRET_KEYS } from "../support/endpoint.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const CALLBACKS = 20_000;
const HOSTS = 500;

let service: Service;
let receiver: CallbackReceiver;
const silence = createServer(() => undefined);
before(async () => {
  receiver = await startReceiver();
  await new Promise<void>((resolve) => silence.listen(0, "0.0.0.0", resolve));
  service = await startService({
    roles: ["api", "worker", "keeper"],
    secretKeys: SECRET_KEYS,
    allowAddresses: ["127.0.0.0/8"],
  });
});
after(async () => {
  await service.stop();
  receiver.close();
  silence.close();
});

const newId = createIds();

async function flood(tenant: number): Promise<void> {
  await ensureRequestsEndpoint(service.db, SECRET_KEYS, tenant);
  const port = (silence.address() as AddressInfo).port;
  for (let from = 0; from < CALLBACKS; from += 1_000) {
    const rows = Array.from({ length: 1_000 }, (_, n) => {
      const host = `127.1.${((from + n) % HOSTS) >> 8}.${((from + n) % HOSTS) % 256}`;
      const url = `http://${host}:${port}/`;
      const callback = { webhookId: `msg_${from + n}`, endpoint: REQUESTS, url, type: "t", timestamp: "", data: {} };
      return acceptedRow({ id: newId(), tenant, policy: "best_effort", callback });
    });
    await service.db.query("select carillon.accept($1, false)", [`[${rows.join(",")}]`]);
  }
}

test("another tenant's callbacks and notifications go on as before", async () => {
  const { rows } = await service.db.query("insert into carillon.tenants (name) values ('hostile') returning id");
  await flood(rows[0].id);
  for (let n = 0; n < 10; n++) {
    const request = { channel: "console", content: { body: "b" }, callbackUrl: `${receiver.url}/${n}` };
    const { body } = await service.ask("POST", "/v1/notifications", request);
    await until(async () => (receiver.at(`/${n}`).length > 0 ? true : undefined), 60_000);
    const { status } = (await service.ask("GET", `/v1/notifications/${body.notificationId}`)).body;
    assert.equal(status, "sent");
  }
  const tried = await service.db.query(
    "select count(distinct notification_id)::int as n from carillon.events where tenant = $1 and type = 'attempt'",
    [-rows[0].id],
  );
  assert.ok(tried.rows[0].n < CALLBACKS / 2, `the others went before ${CALLBACKS - tried.rows[0].n} of them`);
});
