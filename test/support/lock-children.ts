// Processes that take locks, seen from the test that commands them.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { HeldByOther, Hold, Unavailable } from "#guards/lock/lock.ts";
import { cleanEnvironment } from "./process.ts";

export type Where = { url: string } | { namespace: string; kubeconfig?: string };
export type ChildSetting = { identity: string; skewMs: number; at: Where };
/** When somebody held a lock, on the machine's clock. */
export type Span = { key: string; token: number; from: number; to: number };
type Command =
  | { verb: "acquire" | "renew"; key: string; ttlMs: number }
  | { verb: "release"; key: string }
  | { verb: "churn"; keys: string[]; times: number };
export type Order = Command & { n: number };

export type LockChild = {
  identity: string;
  /** With the instant of the answer on the machine's clock. */
  acquire(key: string, ttlMs: number): Promise<{ answer: Hold | HeldByOther | Unavailable; at: number }>;
  renew(key: string, ttlMs: number): Promise<string>;
  release(key: string): Promise<string>;
  churn(keys: string[], times: number): Promise<Span[]>;
  kill(): Promise<void>;
};

export async function startLockChildren(t: TestContext, at: Where, skews: number[]): Promise<LockChild[]> {
  return Promise.all(skews.map((skewMs, n) => startLockChild(t, { identity: `worker-${n}`, skewMs, at })));
}

async function startLockChild(t: TestContext, setting: ChildSetting): Promise<LockChild> {
  const env = cleanEnvironment();
  const child = fork(join(import.meta.dirname, "lock-child.ts"), [JSON.stringify(setting)], { env });
  const waiting = new Map<number, { resolve: (said: Said) => void; reject: (error: Error) => void }>();
  let last = 0;
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  t.after(kill);
  await new Promise<void>((resolve, reject) => {
    child.once("message", () => resolve());
    child.once("exit", () => reject(new Error("the process ended before it was ready")));
  });
  child.on("message", (said: Said) => {
    const { resolve, reject } = waiting.get(said.n) ?? {};
    waiting.delete(said.n);
    if (said.error === undefined) resolve?.(said);
    else reject?.(new Error(said.error));
  });
  const tell = (command: Command) =>
    new Promise<Said>((resolve, reject) => {
      const n = ++last;
      waiting.set(n, { resolve, reject });
      child.send({ ...command, n });
    });
  const kindOf = async (command: Command) => ((await tell(command)).answer as { kind: string }).kind;
  return {
    identity: setting.identity,
    async acquire(key, ttlMs) {
      const said = await tell({ verb: "acquire", key, ttlMs });
      return { answer: said.answer as Hold | HeldByOther | Unavailable, at: said.at };
    },
    renew: (key, ttlMs) => kindOf({ verb: "renew", key, ttlMs }),
    release: (key) => kindOf({ verb: "release", key }),
    churn: async (keys, times) => (await tell({ verb: "churn", keys, times })).answer as Span[],
    kill,
  };
}

type Said = { n: number; answer: unknown; at: number; error?: string };
