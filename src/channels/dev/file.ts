// Appends messages to a file, one JSON line each, flushed to the disk before the answer.
//
// Messages that arrive together share a write and a flush.

import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Message, Provider } from "#channels/channel.ts";
import { CHANNELS } from "#domain/notification.ts";
import { createGroupCommit } from "#timing/group-commit.ts";

export function fileProvider(path: string): Provider {
  const opening = mkdir(dirname(path), { recursive: true }).then(() => open(path, "a", 0o600));
  // A file that cannot be opened is told to whoever sends, not to the process.
  opening.catch(() => undefined);

  const lines = createGroupCommit<string, void>({
    abreast: 1,
    maxWaitingRows: 100_000,
    maxWaitingBytes: 256 * 1024 * 1024,
    async commit(batch) {
      const file = await opening;
      await file.appendFile(`${batch.join("\n")}\n`);
      await file.datasync();
      return batch.map(() => undefined);
    },
  });

  return {
    name: "file",
    channels: CHANNELS,
    capabilities: { batch: 1, attachments: true, tracking: false, reconciles: false },
    encode: (message) => ({ type: "application/json", body: fileLine(message, Date.now()) }),
    async send(message) {
      const line = fileLine(message, Date.now());
      try {
        const written = lines.submit([line], line.length);
        if (!written) return { kind: "limited", reason: "too much is waiting to be written" };
        await written;
        return { kind: "accepted" };
      } catch (error) {
        return { kind: "unavailable", reason: error instanceof Error ? error.message : String(error) };
      }
    },
    async close() {
      await lines.idle();
      await opening.then((file) => file.close()).catch(() => undefined);
    },
  };
}

export const fileLine = ({ notificationId, attempt, request }: Message, at: number): string =>
  JSON.stringify({ notificationId, attempt, at: new Date(at).toISOString(), ...request });
