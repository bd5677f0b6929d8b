// What speaks like SQS in a run, and does what SQS may do. That it was purged is told by nobody and found out within minutes: test/queue/sqs-faults.test.ts.

import { SQS_KEYS, startSqs } from "../test/support/servers/sqs.ts";
import { type Misdeeds, startSqsProxy } from "../test/support/sqs-proxy.ts";
import type { EngineServer, Hand } from "./engine.ts";

const THROTTLED = "ThrottlingException";

export async function openSqsServer(): Promise<EngineServer> {
  const server = await startSqs();
  const proxy = await startSqsProxy(server.endpoint);
  const misbehave =
    (misdeeds: Misdeeds) =>
    async ({ wait, between }: Hand) => {
      Object.assign(proxy.misdeeds, misdeeds);
      await wait(between(500, 4_000));
      for (const name of Object.keys(misdeeds)) delete proxy.misdeeds[name as keyof Misdeeds];
    };
  const { keys } = SQS_KEYS as { keys: { accessKeyId: string; secretAccessKey: string } };
  return {
    name: "sqs",
    env: {
      CARILLON_SQS_ENDPOINT: proxy.endpoint,
      CARILLON_SQS_ACCESS_KEY_ID: keys.accessKeyId,
      CARILLON_SQS_SECRET_ACCESS_KEY: keys.secretAccessKey,
    },
    deck: [
      ...(["cut sqs", "cut sqs", "throttle sqs", "everything twice", "everything twice"] as const),
      ...(["move the queue", "move the queue"] as const),
    ],
    dues: ["cut sqs", "everything twice", "move the queue"],
    acts: {
      "cut sqs": misbehave({ isAway: true }),
      "throttle sqs": misbehave({ refuses: { SendMessageBatch: THROTTLED, ReceiveMessage: THROTTLED } }),
      "everything twice": misbehave({ sendsTwice: true, shuffles: true }),
    },
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}
