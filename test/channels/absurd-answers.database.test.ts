// Providers and receivers that say absurd things: each of their messages is settled, and nothing beside them is.

import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import type { StandIn } from "../support/scripted.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

let service: Service;
let standIn: StandIn;
before(async () => {
  standIn = await startStandIn();
  service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: {
      mail: { type: "sendgrid", apiKey: "SG.x", from: "bell@example.com", apiUrl: standIn.url, webhookPublicKey: KEY },
      hooks: { type: "webhook" },
    },
    routes: { email: "mail", webhook: "hooks" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
  });
});
after(async () => {
  await service.stop();
  await standIn.close();
});
/** Reports are wanted, so that receipts are kept for them. */
const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .publicKey.export({ type: "spki", format: "der" })
  .toString("base64");

async function settled(notification: object) {
  const { body } = await service.ask("POST", "/v1/notifications", { ...notification, retryPolicy: { maxAttempts: 2 } });
  return until(async () => {
    const { body: record } = await service.ask("GET", `/v1/notifications/${body.notificationId}`);
    return record.attempts.length > 0 && record.status !== "processing" ? record : undefined;
  });
}
const mail = () =>
  settled({ channel: "email", recipient: { email: "a@b.co" }, content: { subject: "s", textBody: "t" } });
const hook = (path: string) =>
  settled({ channel: "webhook", recipient: { webhookUrl: `${standIn.url}${path}` }, content: { body: "b" } });

test("a receipt that no index could hold is left out", async () => {
  standIn.answer({ status: 202, headers: { "x-message-id": randomBytes(6_000).toString("base64url") } });
  const { status, attempts } = await mail();
  assert.deepEqual([status, attempts[0].detail], ["sent", undefined]);
});

test("a reset in a million years is waited for a day at most", async () => {
  standIn.answer({
    status: 429,
    headers: { "x-ratelimit-reset": "1e300" },
    body: { errors: [{ message: "too many" }] },
  });
  const { status, attempts } = await mail();
  assert.deepEqual([status, attempts[0].outcome], ["pending", "limited"]);
  const { rows } = await service.db.query("select max(due_at) <= now() + interval '1 day' as soon from carillon.later");
  assert.deepEqual(rows, [{ soon: true }]);
});

test("a receiver's Retry-After may be what it likes", async () => {
  for (const [n, after] of ["1e300", "-1e300", "NaN", "Infinity", "Fri, 31 Dec 275759 00:00:00 GMT"].entries()) {
    standIn.answer({ status: 503, headers: { "retry-after": after } });
    // It may have been tried again by the time it is read.
    const { attempts } = await hook(`/${n}`);
    assert.equal(attempts[0].outcome, "unavailable", after);
  }
});
