// The stream role, wired. A reader that comes asks in its tenant's turn; what the role looks up for all of them does not.

import type { RequestTurns } from "#http/core/turns.ts";
import { type RunningStream, startStream } from "#roles/stream.ts";
import { readNews } from "#store/inbox-news.ts";
import { createStreamMetrics } from "#telemetry/stream-metrics.ts";
import type { Base } from "./base.ts";

export function openStream({ config, database, clock, url, facts, metrics }: Base, turns: RequestTurns): RunningStream {
  return startStream({
    db: database.own,
    clock,
    read: (readings) => turns.small(readings[0]?.tenant ?? 0, () => readNews(database.small, readings)),
    url,
    maxStreams: config.maxStreams,
    perUser: config.streamsPerUser,
    onLost: (error) => facts.listenerLost("stream", error),
    metrics: createStreamMetrics(metrics.registry),
    facts,
  });
}
