// The queue with SQS beside it passes the suite of all engines, but for what is about order.

import { after } from "node:test";
import type { SqsEngine } from "#queue/sqs/engine.ts";
import { queueConformance } from "../conformance/queue.ts";
import { setUpQueue } from "../support/queue-on-postgres.ts";
import { startSqs } from "../support/servers/sqs.ts";
import { createEngine, emptyQueues, openQueues, waitingFor } from "../support/sqs-engine.ts";

const server = await startSqs();
after(() => server.stop());

const setUp = async () => {
  const opened = openQueues(server.endpoint, "q");
  await opened.queues.check();
  let engine: SqsEngine | undefined;
  const harness = await setUpQueue({
    engines: (db) => {
      engine = createEngine(opened, { db });
      // One for both, as what one process has received another does not see.
      const waiting = waitingFor(engine, opened);
      return [waiting, waiting];
    },
    empty: () => emptyQueues(opened),
  });
  return {
    ...harness,
    async stop() {
      await engine?.close();
      await opened.close();
      await harness.stop();
    },
  };
};

queueConformance("sqs", setUp, { hasOrder: false });
