// Callbacks of a history that is told by hand: made, tried, posted to a receiver and ended as the product would have done it.

import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import type { NotificationRequest } from "#domain/notification.ts";
import type { CalledEndpoint, Change, EventRow, History, Post } from "../../chaos/history.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const secret = Buffer.alloc(32, 7);

export const REQUESTS_OF_ADA: CalledEndpoint = {
  ...{ id: "requests", tenant: "ada", path: "/requests/ada", events: null, fifo: "notification" },
  secret: `whsec_${secret.toString("base64")}`,
  publicKey: `whpk_${Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString("base64")}`,
};

/** Signs it anew. */
export function signed(post: Omit<Post, "signature">): Post {
  const { id, timestamp, body } = post;
  const text = Buffer.from(`${id}.${timestamp}.${body}`);
  const hmac = createHmac("sha256", secret).update(text).digest("base64");
  return { ...post, signature: `v1,${hmac} v1a,${sign(null, text, privateKey).toString("base64")}` };
}

type About = { notificationId: string; type: string; attempt?: number };
const LEASE_MS = 2_000;

/** Of each try when it came and what it was answered; after the last it has ended. */
export function tellCallback(history: History, about: About, tries: readonly { at: number; status: number }[]): void {
  const { callbacks, posts } = history;
  const { notificationId, type, attempt } = about;
  const seq = 1_000 + callbacks.notifications.length;
  const id = `callback ${seq}`;
  const callback = {
    ...{ webhookId: `msg_${seq}`, endpoint: REQUESTS_OF_ADA.id, url: "http://127.0.0.1/", timestamp: "" },
    ...{ type: `notification.${type}`, data: { notificationId, ...(attempt !== undefined && { attempt }) } },
  };
  const request = { channel: "callback", content: {}, retryPolicy: { maxAttempts: 4 }, callback };
  const row = { ...{ id, seq, tenant: -1, priority: 4 }, acceptedAt: 0, dueAt: null, expiresAt: null };
  const status = outcomeOf(tries.at(-1)?.status ?? 0).to;
  callbacks.notifications.push({ ...row, request: request as unknown as NotificationRequest, status });
  for (const [n, { at, status }] of tries.entries()) {
    const ending = outcomeOf(status);
    const [token, xid] = [seq * 10 + n, 100_000 + seq * 10 + n];
    const lease: Change = {
      ...{ n: callbacks.journal.length, xid: -xid, op: "insert", place: "leased", seq, id, tenant: -1, priority: 4 },
      ...{ beganAt: at - 20, at: at - 20, committedAt: at - 20, attempt: n + 1, token, worker: 1 },
      ...{ until: at - 20 + LEASE_MS, oldToken: null, oldUntil: null, due: null },
    };
    const end: Change = {
      ...lease,
      n: lease.n + 1,
      xid,
      op: "delete",
      beganAt: at + 40,
      at: at + 50,
      committedAt: at + 51,
    };
    callbacks.journal.push(lease, end);
    const event: EventRow = {
      ...{ id, number: n + 1, at: at + 50, xid, type: "attempt", from: "processing", attempt: n + 1, token, worker: 1 },
      ...{ startedAt: at - 10, cost: null, reason: null, ...ending },
    };
    callbacks.events.push(event);
    const body = JSON.stringify({ type: callback.type, timestamp: callback.timestamp, data: callback.data });
    const timestamp = String(Math.floor(at / 1000));
    posts.push(signed({ at, path: REQUESTS_OF_ADA.path, id: callback.webhookId, timestamp, body, status }));
  }
}

function outcomeOf(status: number): Pick<EventRow, "to" | "outcome"> {
  if (status === 0) return { to: "pending", outcome: "ambiguous" };
  return status < 300 ? { to: "sent", outcome: "accepted" } : { to: "failed", outcome: "rejected" };
}
