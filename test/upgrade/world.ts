// What the tests of upgrades share: a database, a receiver, and the settings that both versions get.

import assert from "node:assert/strict";
import { type KeyObject, randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import pg from "pg";
import { freshDatabase } from "../support/postgres.ts";
import type { ServiceProcess, Variables } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type Receiver, startReceiver } from "./receiver.ts";

export const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
export const inbox = (title: string, userId = "ada") => ({
  channel: "inbox",
  recipient: { userId },
  content: { title },
});

export type World = { receiver: Receiver; db: pg.Pool; env: Variables };

/** `reporter` signs what SendGrid says later. */
export async function openWorld(t: TestContext, reporter: KeyObject): Promise<World> {
  const receiver = await startReceiver();
  const database = await freshDatabase();
  const db = new pg.Pool({ connectionString: database.url, max: 2 });
  t.after(async () => {
    await db.end();
    await database.drop();
    await receiver.close();
  });
  const mail = {
    type: "sendgrid",
    from: "bell@example.com",
    apiKey: "SG.ours",
    apiUrl: receiver.url,
    webhookPublicKey: reporter.export({ type: "spki", format: "der" }).toString("base64"),
  };
  const env = {
    DATABASE_URL: database.url,
    CARILLON_PROVIDERS: JSON.stringify({ mail }),
    CARILLON_ROUTES: JSON.stringify({ email: "mail" }),
    CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
    CARILLON_SECRET_KEYS: randomBytes(32).toString("base64"),
    CARILLON_LIMITS: JSON.stringify({ tenant: [{ per: "minute", most: 100_000 }] }),
    CARILLON_LOCKS: "postgres",
    // Not webhooks: the lock of a process that was killed is waited for, which is shown elsewhere.
    CARILLON_LOCK_CHANNELS: "email",
    CARILLON_LEASE_MS: "4000",
    CARILLON_SWEEP_MS: "200",
    CARILLON_SEND_TIMEOUT_MS: "20000",
  };
  return { receiver, db, env };
}

/** What a process is asked for, and must grant. */
export function talkTo({ ask, url }: Pick<ServiceProcess, "ask" | "url">, receiver: Receiver) {
  const must = async (method: string, path: string, body?: unknown, key?: string) => {
    const answer = await ask(method, path, body, key === undefined ? {} : { key });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const send = async (request: object): Promise<string> =>
    (await must("POST", "/v1/notifications", request)).notificationId;
  const hook = (path: string, body: string, more: object = {}) =>
    send({ channel: "webhook", recipient: { webhookUrl: receiver.url + path }, content: { body }, ...more });
  const read = (id: string) => must("GET", `/v1/notifications/${id}`);
  const ends = (id: string, status: string) =>
    until(async () => {
      const found = await read(id);
      return found.status === status ? found : undefined;
    }, 30_000);
  return { url, must, send, hook, read, ends };
}
export type Talk = ReturnType<typeof talkTo>;
