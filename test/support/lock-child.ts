// A process that takes locks as it is told, for tests that need several of them and kill some. Its wall clock may be wrong.
//
// Started by fork with its setting as JSON; each message names a verb, each answer the message.

import pg from "pg";
import { createKubernetesLock } from "#guards/lock/kubernetes.ts";
import type { Hold, Lock } from "#guards/lock/lock.ts";
import { createPostgresLock } from "#guards/lock/postgres.ts";
import type { ChildSetting, Order, Span } from "./lock-children.ts";

const setting: ChildSetting = JSON.parse(process.argv[2] ?? "{}");
const { identity, skewMs, at } = setting;
const monotonic = () => performance.now();
const wallClock = () => Date.now() + skewMs;
/** The same clock in all processes of a machine. */
const machineMs = () => Number(process.hrtime.bigint()) / 1e6;
const holds = new Map<string, Hold>();
const lock = open();

function open(): Lock {
  if ("url" in at) {
    const db = new pg.Pool({ connectionString: at.url, max: 4 });
    // The test may end the server before us.
    db.on("error", () => undefined);
    return createPostgresLock({ db, identity, monotonic });
  }
  return createKubernetesLock({ ...at, identity, monotonic, wallClock });
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function obey(order: Order): Promise<unknown> {
  switch (order.verb) {
    case "acquire": {
      const answer = await lock.acquire(order.key, order.ttlMs);
      if (answer.kind === "acquired") holds.set(order.key, answer);
      return answer;
    }
    case "renew": {
      const hold = holds.get(order.key);
      return hold && lock.renew(hold, order.ttlMs);
    }
    case "release": {
      const hold = holds.get(order.key);
      return hold && lock.release(hold);
    }
    case "churn":
      return churn(order.keys, order.times);
  }
}

/** Takes and frees each key that many times; answers with when it held what. */
async function churn(keys: string[], times: number): Promise<Span[]> {
  const spans: Span[] = [];
  await Promise.all(
    keys.map(async (key) => {
      for (let held = 0; held < times; ) {
        const answer = await lock.acquire(key, 5_000);
        if (answer.kind !== "acquired") {
          await sleep(1);
          continue;
        }
        const from = machineMs();
        await sleep(2);
        // A process that was kept waiting too long knows that it no longer holds it.
        const to = machineMs() + Math.min(0, answer.endsAt - monotonic());
        spans.push({ key, token: answer.token, from, to });
        held++;
        await lock.release(answer);
        await sleep(1);
      }
    }),
  );
  return spans;
}

process.on("message", (order: Order) => {
  obey(order).then(
    (answer) => process.send?.({ n: order.n, answer, at: machineMs() }),
    (error: unknown) => process.send?.({ n: order.n, error: String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
// The first use loads the client; that is no part of any race.
await lock.holder("warm-up");
process.send?.("ready");
