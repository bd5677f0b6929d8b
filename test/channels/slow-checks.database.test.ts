// A provider that takes its time to say how it is keeps nobody waiting but those who asked.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { startService } from "../support/service.ts";
import { until } from "../support/until.ts";

test("whoever waits for a silent provider's health takes no turn from others, and asks it once", async (t) => {
  const open = new Set<Socket>();
  const silent = createServer((socket) => open.add(socket.on("error", () => undefined)));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    for (const socket of open) socket.destroy();
    silent.close();
  });
  const service = await startService({
    databaseConnections: 2,
    providers: {
      mail: { type: "smtp", host: "127.0.0.1", port: (silent.address() as AddressInfo).port, from: "a@example.com" },
    },
  });
  t.after(service.stop);
  const keyOf = (tenant: string) => service.makeKey({ tenant, scopes: ["admin"] });
  const other = await keyOf("other");
  const asked = (await Promise.all(["one", "two"].map(keyOf))).flatMap((key) =>
    Array.from({ length: 5 }, () => [
      service.ask("POST", "/v1/providers/mail/test", undefined, { key }),
      service.ask("GET", "/v1/providers", undefined, { key }),
    ]).flat(),
  );
  await until(async () => (open.size > 0 ? true : undefined));
  for (const path of ["/v1/workers", "/v1/schedules", "/v1/keys", "/v1/queue"]) {
    const { status, body } = await service.ask("GET", path, undefined, { key: other });
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
  }
  assert.equal(open.size, 1);
  for (const socket of open) socket.destroy();
  for (const { status, body } of await Promise.all(asked)) {
    assert.equal(status, 200);
    const health = body.data?.find(({ name }: { name: string }) => name === "mail").health ?? body;
    assert.equal(health.healthy, false);
  }
});
