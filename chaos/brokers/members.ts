// Members of the sources' groups that come and go, so that partitions are shared out anew again and again. They read nothing: what they were given waits.
//
// State: the last generation of each group. It grows by one each time the group is shared out.

import { setTimeout as sleep } from "node:timers/promises";
import { Consumer } from "@platformatic/kafka";
import { cut, hearErrors } from "#wire/kafka-client.ts";

export type Members = { rebalances(): number; stop(): Promise<void> };

type MembersOptions = {
  bootstrap: string;
  /** By the topic that each reads. */
  groups: ReadonlyMap<string, string>;
  random: () => number;
};

const STAYS_MS = 400;
const AGAIN_MS = 300;
const JOIN_MS = 40_000;
const GOODBYE_MS = 3_000;

export function startMembers({ bootstrap, groups, random }: MembersOptions): Members {
  let isStopped = false;
  let rebalances = 0;

  async function join(topic: string, groupId: string, before: number | undefined): Promise<number> {
    const consumer = new Consumer({
      clientId: "passer-by",
      bootstrapBrokers: [bootstrap],
      groupId,
      connectTimeout: 3_000,
      retries: 1,
      sessionTimeout: 10_000,
      heartbeatInterval: 500,
      rebalanceTimeout: 30_000,
    });
    hearErrors(consumer);
    consumer.on("error" as "client:close", () => undefined);
    try {
      consumer.topics.track(topic);
      const joined = consumer.joinGroup({});
      joined.catch(() => undefined);
      const isIn = await Promise.race([joined, sleep(JOIN_MS, undefined, { ref: false })]);
      if (isIn === undefined) throw new Error(`nobody shared out ${groupId} for ${JOIN_MS} ms`);
      const generation = consumer.generationId;
      // That it came in was one; a group that Kafka has forgotten begins anew.
      rebalances += before !== undefined && generation > before ? generation - before : 1;
      await sleep(random() * STAYS_MS);
      return generation;
    } finally {
      await leave(consumer);
    }
  }

  async function comeAndGo(topic: string, groupId: string): Promise<void> {
    let generation: number | undefined;
    while (!isStopped) {
      // Kafka is away, or the connection was cut: then it is tried again.
      generation = await join(topic, groupId, generation).catch(() => generation);
      if (!isStopped) await sleep(random() * AGAIN_MS);
    }
  }

  const running = [...groups].map(([topic, groupId]) => comeAndGo(topic, groupId));
  return {
    rebalances: () => rebalances,
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

/** Says goodbye where that is possible; otherwise the group will miss it. */
async function leave(consumer: Consumer): Promise<void> {
  const gone = consumer.close(true).then(
    () => true,
    () => false,
  );
  if (!(await Promise.race([gone, sleep(GOODBYE_MS, false, { ref: false })]))) await cut(consumer);
}
