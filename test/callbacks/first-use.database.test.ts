// A deployment with nothing configured, whose tenants ask to be called back for the first time.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import type pg from "pg";
import { Webhook } from "standardwebhooks";
import { openSecrets } from "#domain/endpoint.ts";
import { createIds } from "#domain/ids.ts";
import { makeCallbacks } from "#steps/calls/make-callbacks.ts";
import { resealEndpoints } from "#steps/calls/reseal-endpoints.ts";
import { findEndpoint } from "#store/endpoints.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import { type CallbackReceiver, type Posted, startReceiver } from "../support/callback-receiver.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let receiver: CallbackReceiver;
before(async () => {
  receiver = await startReceiver();
  service = await startService({ roles: ["api", "worker"], allowAddresses: ["127.0.0.1"] });
});
after(async () => {
  await service.stop();
  receiver.close();
});

const come = (path: string): Promise<Posted> => until(async () => receiver.at(path)[0]);
const verify = (secret: string, { raw, headers }: Posted) =>
  new Webhook(secret).verify(raw, headers as { [name: string]: string });
const requestTo = (path: string) => ({
  channel: "console",
  content: { body: "b" },
  callbackUrl: `${receiver.url}${path}`,
});

test("without CARILLON_SECRET_KEYS an endpoint and a callbackUrl are called back all the same, signed", async () => {
  const key = await service.makeKey({ tenant: "unkeyed", scopes: ["admin"] });
  const made = await service.ask(
    "POST",
    "/v1/endpoints",
    { url: `${receiver.url}/endpoint`, events: ["sent"] },
    { key },
  );
  assert.equal(made.status, 201);
  assert.equal((await service.ask("POST", "/v1/notifications", requestTo("/request"), { key })).status, 202);
  verify(made.body.secret, await come("/endpoint"));
  await come("/request");
  const { body } = await service.ask("POST", "/v1/endpoints/requests/rotate", undefined, { key });
  assert.equal((await service.ask("POST", "/v1/notifications", requestTo("/rotated"), { key })).status, 202);
  verify(body.secret, await come("/rotated"));
});

test("an open transaction in which a tenant first asks keeps nobody of that tenant waiting", async () => {
  const key = await service.makeKey({ tenant: "first", scopes: ["send"] });
  const open = await service.db.connect();
  try {
    await open.query("begin");
    await open.query("select carillon.send($1, 'first')", [requestTo("/open")]);
    assert.equal((await service.ask("POST", "/v1/notifications", requestTo("/beside"), { key })).status, 202);
  } finally {
    await open.query("rollback");
    open.release();
  }
  await come("/beside");
  assert.equal(receiver.at("/open").length, 0);
});

test("who first asks while the feed is being read is not passed over", async () => {
  const quiet = await startService({ roles: ["api"] });
  try {
    await quiet.makeKey({ tenant: "late", scopes: ["send"] });
    const open = await quiet.db.connect();
    await open.query("begin");
    await open.query("select carillon.send($1, 'late')", [{ ...requestTo("/"), callbackEvents: ["accepted"] }]);
    let isSent = false;
    const pool = beforeFeed(quiet.db, async () => {
      if (isSent) return;
      isSent = true;
      await open.query("commit");
      open.release();
    });
    const refuse = () => assert.fail();
    const world = {
      pool,
      newId: createIds(),
      retentionDays: 30,
      facts: { refused: refuse, missed: refuse, followedApart: refuse },
    };
    const secretKeys = await readEndpointKeys(quiet.db, []);
    let made = 0;
    await until(async () => {
      const round = await makeCallbacks({ ...world, secretKeys });
      made += round?.made ?? 0;
      return made > 0 || (isSent && round?.isAtEnd && (await isRead(quiet.db))) ? true : undefined;
    });
    assert.equal(made, 1);
  } finally {
    await quiet.stop();
  }
});

/** Whether the follower is behind all that the feed has. */
async function isRead(db: pg.Pool): Promise<boolean> {
  const { rows } = await db.query(
    `select not exists (select from carillon.feed f where (f.key, f.seq) >= (w.key, w.seq)) as is_read
     from carillon.followers w where name = 'callbacks'`,
  );
  return rows[0]?.is_read ?? false;
}

/** A pool that does something else before each look at the feed. */
function beforeFeed(pool: pg.Pool, act: () => Promise<void>): pg.Pool {
  const connect = async () => {
    const client = await pool.connect();
    return new Proxy(client, {
      get(target, name) {
        if (name !== "query") return Reflect.get(target, name, target);
        return async (given: { name?: string }, values?: unknown[]) => {
          if (given.name === "carillon-feed") await act();
          return values ? target.query(given as never, values) : target.query(given as never);
        };
      },
    });
  };
  return new Proxy(pool, { get: (target, name) => (name === "connect" ? connect : Reflect.get(target, name, target)) });
}

test("what was sealed with an old key is sealed again, so that the old one can go", async () => {
  const key = await service.makeKey({ tenant: "resealed", scopes: ["admin"] });
  const { body: made } = await service.ask("POST", "/v1/endpoints", { url: `${receiver.url}/resealed` }, { key });
  const { body: now } = await service.ask("POST", `/v1/endpoints/${made.id}/rotate`, undefined, { key });
  const { rows } = await service.db.query<{ id: number }>("select id from carillon.tenants where name = 'resealed'");
  const tenant = rows[0]?.id ?? 0;
  const secretsUnder = async (...keys: Buffer[]) => {
    const row = await findEndpoint(service.db, tenant, made.id);
    return row && openSecrets(keys, row, new Date())?.map(({ secret }) => secret);
  };
  const old = await readEndpointKeys(service.db, []);
  const fresh = randomBytes(32);
  assert.equal(await secretsUnder(fresh), undefined);
  await resealEndpoints(service.db, [fresh, ...old]);
  assert.deepEqual(await secretsUnder(fresh), [now.secret, made.secret]);
  // With the first key again in its place, as all the others of this deployment have it.
  await resealEndpoints(service.db, [...old, fresh]);
  assert.deepEqual(await secretsUnder(...old), [now.secret, made.secret]);
});
