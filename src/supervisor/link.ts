// A process's end of what connects it with its supervisor. When that breaks, the supervisor is gone, and the process stops as if it
// had been told to.

import cluster from "node:cluster";
import type { ProcessFigures, Siblings, Standing } from "#telemetry/siblings.ts";
import type { Begin, FromProcess, ToProcess } from "./messages.ts";

export type Link = {
  /** What to serve; never, when it is to stop before. */
  begun: Promise<Begin & { siblings: Siblings }>;
  /** Why to stop. */
  stopped: Promise<string>;
  /** Resolves when it is on its way. */
  tell(message: FromProcess): Promise<void>;
};

const GONE = "the supervisor is gone";

export function openLink(): Link {
  const { worker } = cluster;
  if (!worker) throw new Error("this program is started by carillon start");
  const openedAt = performance.now();
  const asked = new Map<number, { resolve: (text: string) => void; reject: (error: Error) => void }>();
  let asks = 0;
  let standing: Standing = { of: 0, up: 0 };
  let read = async (): Promise<ProcessFigures> => [];

  const tell = (message: FromProcess) =>
    new Promise<void>((resolve) => {
      if (worker.isConnected()) worker.send(message, () => resolve());
      else resolve();
    });
  const count = (ask: number) =>
    read().then(
      (figures) => tell({ kind: "counted", ask, figures }),
      (error: unknown) => tell({ kind: "uncounted", ask, fault: String(error) }),
    );
  const siblingsOf = ({ number, uptimeSeconds }: Begin): Siblings => ({
    number,
    standing: () => standing,
    figures: () =>
      new Promise((resolve, reject) => {
        if (!worker.isConnected()) return reject(new Error(GONE));
        asked.set(++asks, { resolve, reject });
        void tell({ kind: "asks", ask: asks });
      }),
    contribute(contribution) {
      read = contribution;
    },
    uptimeSeconds: () => uptimeSeconds + (performance.now() - openedAt) / 1000,
  });

  let begin: (begun: Begin & { siblings: Siblings }) => void;
  const begun = new Promise<Begin & { siblings: Siblings }>((resolve) => {
    begin = resolve;
  });
  const stopped = new Promise<string>((resolve) => {
    worker.once("disconnect", () => {
      // Otherwise node:cluster ends us on the spot, with all that is in hand.
      worker.exitedAfterDisconnect = true;
      resolve(GONE);
      // Whoever waits for an answer would keep us until the time to stop is over.
      for (const { reject } of asked.values()) reject(new Error(GONE));
      asked.clear();
    });
    worker.on("message", (message: ToProcess) => {
      switch (message.kind) {
        case "begin":
          standing = message.begin.standing;
          return begin({ ...message.begin, siblings: siblingsOf(message.begin) });
        case "standing":
          standing = message.standing;
          return;
        case "count":
          return void count(message.ask);
        case "figures":
          asked.get(message.ask)?.resolve(message.text);
          return void asked.delete(message.ask);
        case "no figures":
          asked.get(message.ask)?.reject(new Error(message.fault));
          return void asked.delete(message.ask);
        case "ping":
          return void tell({ kind: "pong" });
        case "stop":
          return resolve("stop");
      }
    });
  });
  void tell({ kind: "hello" });
  return { begun, stopped, tell };
}
