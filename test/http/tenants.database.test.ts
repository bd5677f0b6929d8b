// /v1/tenants: for who runs the deployment.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

test("tenants are listed page by page, and given a weight", async () => {
  for (const tenant of ["acme", "beta"]) await service.makeKey({ tenant, scopes: ["send"] });
  const first = await service.ask("GET", "/v1/tenants?limit=2");
  assert.deepEqual(
    first.body.data.map(({ name, weight }: { name: string; weight: number }) => [name, weight]),
    [
      ["acme", 1],
      ["beta", 1],
    ],
  );
  const { body: rest } = await service.ask("GET", `/v1/tenants?limit=2&cursor=${first.body.nextCursor}`);
  assert.deepEqual([rest.data.map(({ name }: { name: string }) => name), rest.nextCursor], [["default"], null]);
  const weighed = await service.ask("PATCH", "/v1/tenants/acme", { weight: 3 });
  assert.deepEqual([weighed.status, weighed.body.name, weighed.body.weight], [200, "acme", 3]);
  assert.equal((await service.ask("GET", "/v1/tenants")).body.data[0].weight, 3);
});

test("a weight that is none, a tenant that is not there, and somebody else's wish are refused", async () => {
  for (const weight of [0, 101, 1.5, "2", null]) {
    assert.equal((await service.ask("PATCH", "/v1/tenants/default", { weight })).status, 422, String(weight));
  }
  assert.equal((await service.ask("PATCH", "/v1/tenants/default", {})).status, 422);
  assert.equal((await service.ask("PATCH", "/v1/tenants/nobody", { weight: 2 })).status, 404);
  const key = await service.makeKey({ tenant: "greedy", scopes: ["admin"] });
  assert.equal((await service.ask("PATCH", "/v1/tenants/greedy", { weight: 100 }, { key })).status, 403);
  assert.equal((await service.ask("PATCH", "/v1/tenants/nobody", { weight: 100 }, { key })).status, 403);
  assert.equal((await service.ask("GET", "/v1/tenants", undefined, { key })).status, 403);
});
