// Reads what the processes of a run wrote.

import { createReadStream, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import type { LogLine } from "./history.ts";
import type { Slot } from "./slot.ts";

/** Every line that is JSON; a trace on standard error is not. */
export async function readLines<Line>(path: string): Promise<Line[]> {
  const lines: Line[] = [];
  if (!existsSync(path)) return lines;
  for await (const text of createInterface({ input: createReadStream(path) })) {
    if (text.startsWith('{"')) lines.push(JSON.parse(text) as Line);
  }
  return lines;
}

type PinoLine = {
  level: string;
  time: string;
  msg?: string;
  err?: { message: string };
  notificationId?: string;
  attempt?: number;
};

export async function readLogs(slots: Slot[]): Promise<LogLine[]> {
  const logs: LogLine[] = [];
  for (const { name: slot, logs: files } of slots) {
    for (const { pid, path } of files()) {
      const lines = await readLines<PinoLine>(path);
      for (const { level, time, msg: message = "", err, notificationId: id, attempt } of lines) {
        const about = { ...(err && { error: err.message }), ...(id && { id }), ...(attempt && { attempt }) };
        logs.push({ slot, pid, at: Date.parse(time), level, message, ...about });
      }
    }
  }
  return logs;
}
