// carillon send: one notification, and if asked what became of it.

import type { Acceptance, Client } from "#client/client.ts";
import { ENDINGS } from "#domain/status.ts";
import { EXIT, Failure, type Run } from "../command.ts";
import { paintOf } from "../paint.ts";
import { MOST_FAILURES } from "./events.ts";
import { said } from "./lines.ts";
import { readRequest } from "./request.ts";
import { timelineOf } from "./timeline.ts";

const WELL = new Set<string>(["sent", "delivered"]);
const ENDED = new Set<string>(ENDINGS);

export const sendNotification: Run = async (call, world) => {
  const request = await readRequest(call, world);
  const client = await world.client();
  const accepted = await client.send(request);
  const { notificationId, status, priority, scheduledFor } = accepted;
  if (!call.flags.has("wait")) {
    const when = scheduledFor === undefined ? "" : ` for ${scheduledFor}`;
    return said(`${notificationId} is ${status}${when}, ${priority}`, accepted);
  }
  await ended(client, accepted, Number(call.options.timeout ?? 0) * 1_000);
  const detail = await client.get(notificationId);
  const code = WELL.has(detail.status) ? EXIT.done : EXIT.failed;
  return { json: detail, text: timelineOf(detail, paintOf(world.screen)), code };
};

/** Told by the feed, from the acceptance on. */
async function ended(client: Client, accepted: Acceptance, timeoutMs: number): Promise<void> {
  const { notificationId: notification, enqueuedAt: since } = accepted;
  const limit = timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined;
  const options = { maxAttempts: MOST_FAILURES, ...(limit && { signal: limit }) };
  for await (const { to } of client.events.follow({ notification, since }, options)) {
    if (to !== undefined && ENDED.has(to)) return;
  }
  if (limit?.aborted) {
    throw new Failure(
      `${notification} has not ended in ${timeoutMs / 1_000} s: carillon show ${notification}`,
      EXIT.failed,
    );
  }
}
