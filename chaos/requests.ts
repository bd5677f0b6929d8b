// What the senders ask for, drawn from the seed.

import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import { isWell, RECEIVERS, type Receiver, receiverOf, urlOf } from "./ways.ts";

type Way = Pick<NotificationRequest, "channel" | "recipient" | "content">;

const HOOKS = 0.3;
const TEXTS = 0.15;
const CALLED_BACK = 0.2;
const FLOOD_LIVES_MS = 8_000;

function makeWay(key: string, random: () => number): Way {
  const point = random();
  if (point < HOOKS) return hook(key, RECEIVERS[Math.floor((point / HOOKS) * RECEIVERS.length)] ?? "away");
  return point < HOOKS + TEXTS ? text(key) : mail(key);
}

const mail = (key: string): Way => ({
  channel: "email",
  recipient: { email: "ada@example.com" },
  content: { subject: key, textBody: "Hello" },
});
const text = (key: string): Way => ({ channel: "sms", recipient: { phone: "+4930123456" }, content: { body: key } });

const hook = (key: string, receiver: Receiver): Way => ({
  channel: "webhook",
  recipient: { webhookUrl: urlOf(receiver) },
  content: { body: key },
});

const after = (waitMs: number) => new Date(Date.now() + waitMs).toISOString();

/** What requests share: the longest they wait, and where they have callbacks sent. */
export type Given = { maxBackoffMs: number; callbackUrl: string };

/** All that a request may say that the checker knows how to judge. */
export function makeRequest(
  key: string,
  random: () => number,
  { maxBackoffMs, callbackUrl }: Given,
): NotificationRequest {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const way = makeWay(key, random);
  const chance = random();
  const onAmbiguous = chance < 0.15 ? "hold" : chance < 0.25 ? "reconcile" : chance < 0.35 ? "resend" : undefined;
  const dueInMs = random() < 0.1 ? 300 + random() * 1_500 : undefined;
  // Where nothing ever gets through it would wait for the next probe, and the next, beyond the end of the run.
  const isVain = way.channel === "webhook" && !isWell(receiverOf(way) ?? "");
  const livesMs = isVain || random() < 0.08 ? 400 + random() * 6_000 + (dueInMs ?? 0) : undefined;
  const callsBack = random();
  const maxAttempts = pick([undefined, 1, 2, 4, 8]);
  return {
    ...way,
    priority: pick(PRIORITIES),
    idempotencyKey: key,
    retryPolicy: {
      ...(maxAttempts !== undefined && { maxAttempts }),
      backoffMultiplier: pick([1, 2, 3]),
      maxBackoffMs: pick([maxBackoffMs / 2, maxBackoffMs]),
    },
    ...(onAmbiguous && { onAmbiguous }),
    ...(dueInMs !== undefined && { scheduledFor: after(dueInMs) }),
    ...(livesMs !== undefined && { expiresAt: after(livesMs) }),
    ...(callsBack < CALLED_BACK && { callbackUrl }),
    ...(callsBack < CALLED_BACK / 3 && { callbackEvents: ["accepted", "sent", "failed"] }),
  };
}

export type Flood = { way: (key: string) => Way; priority: Priority };

/** Which lane and which way a flood takes: by turns, so that a short run meets them all. */
export function makeFlood(n: number): Flood {
  const ways = [mail, text, (key: string) => hook(key, "silent")];
  const lanes = ["normal", "low", "high"] as const;
  return {
    way: ways[n % ways.length] as Flood["way"],
    priority: lanes[Math.floor(n / ways.length) % lanes.length] as Priority,
  };
}

export const makeFloodRequest = (key: string, { way, priority }: Flood): NotificationRequest => ({
  ...way(key),
  priority,
  idempotencyKey: key,
  retryPolicy: { maxAttempts: 2, backoffMultiplier: 1, maxBackoffMs: 200 },
  expiresAt: after(FLOOD_LIVES_MS),
});
