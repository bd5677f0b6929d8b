// What speaks like SQS: `fauxqs`, in this process.

import { startFauxqs } from "fauxqs";
import type { AwsIdentity } from "#wire/aws-credentials.ts";

export type SqsServer = { endpoint: string; deleteQueue(name: string): void; stop(): Promise<void> };

export const SQS_KEYS: AwsIdentity = {
  kind: "keys",
  keys: { accessKeyId: "test", secretAccessKey: "a-word-for-tests" },
};

export async function startSqs(): Promise<SqsServer> {
  const server = await startFauxqs({ port: 0, logger: false, host: "127.0.0.1" });
  return {
    endpoint: `http://127.0.0.1:${server.port}`,
    deleteQueue: (name) => server.deleteQueue(name),
    stop: () => server.stop(),
  };
}
