// Requests from a topic of Kafka.
//
// The group shares out the partitions; where each goes on is what we kept, never what Kafka did. Messages are fetched by requests of our own rather
// than by the client's stream: each partition has a lane that is read no faster than it is kept, one that is slow keeps no other waiting, and aborted
// transactions are left out also where their end is not yet in sight.
//
// A session lasts as long as nothing is wrong. Then all of it is made anew, from what is kept.

import { createNap } from "#timing/nap.ts";
import { type KafkaPackage, loadKafka } from "#wire/kafka-client.ts";
import { KafkaSession } from "./kafka-session.ts";
import type { SettingsOfSource } from "./settings.ts";
import type { Keeping, OpenSource } from "./source.ts";

type KafkaSettings = SettingsOfSource<"kafka">;

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

export const openKafkaSource: OpenSource<KafkaSettings> = async (settings, name, keeping) => {
  const kafka = await loadKafka(`The source ${name} (kafka)`);
  return runSessions(kafka, { ...settings, group: settings.group ?? `carillon-${name}` }, keeping);
};

function runSessions(kafka: KafkaPackage, settings: KafkaSettings & { group: string }, keeping: Keeping) {
  const nap = createNap();
  let isStopped = false;
  let session: KafkaSession | undefined;

  const running = (async () => {
    let failures = 0;
    while (!isStopped) {
      session = new KafkaSession(kafka, settings, keeping);
      const end = await session.run();
      if (isStopped) break;
      if (session.hasRead) failures = 0;
      // It was ended to be made anew, by itself.
      if (end.kind === "anew") continue;
      keeping.failed(end.error);
      const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++);
      await nap.sleep(waitMs * (0.5 + Math.random() / 2));
    }
  })();
  return {
    lag: () => session?.lag(),
    async stop() {
      isStopped = true;
      nap.wake();
      session?.end({ kind: "anew" });
      await running;
    },
  };
}
