// What the senders ask for, drawn from the seed.

import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";

/** All that a request may say that the checker knows how to judge. */
export function makeRequest(key: string, random: () => number, maxBackoffMs: number): NotificationRequest {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const chance = random();
  const onAmbiguous = chance < 0.15 ? "hold" : chance < 0.25 ? "reconcile" : chance < 0.35 ? "resend" : undefined;
  const dueInMs = random() < 0.1 ? 300 + random() * 1_500 : undefined;
  const livesMs = random() < 0.08 ? 400 + random() * 6_000 + (dueInMs ?? 0) : undefined;
  const maxAttempts = pick([undefined, 1, 2, 4, 8]);
  const after = (waitMs: number) => new Date(Date.now() + waitMs).toISOString();
  return {
    channel: "email",
    recipient: { email: "ada@example.com" },
    content: { subject: key, textBody: "Hello" },
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
  };
}
