// One process, seen by its supervisor: from its start to its end, whatever ends it.

import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { Complaint, FromProcess, ToProcess } from "./messages.ts";

export type Exit = { how: string; complaint: Complaint | undefined };

export type Child = {
  number: number;
  pid: number | undefined;
  isUp(): boolean;
  /** What it does not get, as it ends just now, it does not need. */
  tell(message: ToProcess): void;
  kill(): void;
  exited: Promise<Exit>;
};

export type ChildOptions = {
  number: number;
  /** The module it runs. */
  program: string;
  /** Of the embedded database, which then outlives a supervisor that was killed until this process has handed back what it holds. */
  leash: Socket | undefined;
  /** What to say to it once it listens. */
  greeting: () => ToProcess;
  hear: (message: FromProcess, child: Child) => void;
};

export function startChild({ number, program, leash, greeting, hear }: ChildOptions): Child {
  // Metrics and configuration hold more than JSON can. The number is for whoever lists the processes of the machine.
  const stdio = ["inherit" as const, "inherit" as const, "inherit" as const, "ipc" as const, ...(leash ? [leash] : [])];
  cluster.setupPrimary({ exec: program, args: [String(number)], serialization: "advanced", stdio });
  const worker = cluster.fork();
  closeUntaken(worker);
  let isUp = false;
  let complaint: Complaint | undefined;
  const child: Child = {
    number,
    pid: worker.process.pid,
    isUp: () => isUp,
    tell(message) {
      if (worker.isConnected()) worker.send(message, () => undefined);
    },
    kill: () => void worker.process.kill("SIGKILL"),
    exited: exitOf(worker).then((how) => {
      isUp = false;
      return { how, complaint };
    }),
  };
  worker.on("message", (message: FromProcess) => {
    if (message.kind === "hello") child.tell(greeting());
    if (message.kind === "ready") isUp = true;
    if (message.kind === "failed") complaint = message.complaint;
    hear(message, child);
  });
  return child;
}

type HandOver = { seq?: number; ack?: number };

/**
 * node:cluster forgets the connection that it was handing to a process when that process ended: it would stay open for as long as we
 * live, and nobody would answer it. Closed, its client can ask again.
 */
function closeUntaken({ process: child }: Worker): void {
  const untaken = new Map<number, { close(): void }>();
  const send = child.send;
  child.send = (message: HandOver, handle?: unknown, ...more: unknown[]) => {
    if (message.seq !== undefined && isHandle(handle)) untaken.set(message.seq, handle);
    return Reflect.apply(send, child, [message, handle, ...more]);
  };
  child.on("internalMessage", ({ ack }: HandOver) => void (ack !== undefined && untaken.delete(ack)));
  child.once("exit", () => {
    for (const connection of untaken.values()) connection.close();
  });
}

const isHandle = (handle: unknown): handle is { close(): void } =>
  typeof handle === "object" && handle !== null && "close" in handle;

function exitOf(worker: Worker): Promise<string> {
  return new Promise((resolve) => {
    worker.once("exit", (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`));
    // One that could not even be made has no exit.
    worker.on("error", (error) => {
      if (worker.process.pid === undefined) resolve(error.message);
    });
  });
}
