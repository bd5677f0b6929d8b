// Keeps messages instead of sending them, and shows each on the console: what a developer without credentials wants.

import type { Message, Provider } from "#channels/channel.ts";
import { CHANNELS } from "#domain/notification.ts";
import { lineOf } from "./console.ts";

export type DevOptions = { keep: (message: Message) => Promise<void>; print: (line: string) => void };

export function devProvider({ keep, print }: DevOptions) {
  return {
    name: "dev",
    channels: CHANNELS,
    capabilities: { batch: 1, attachments: true, tracking: false, reconciles: false },
    encode: ({ request }) => ({ type: "application/json", body: JSON.stringify(request) }),
    async send(message) {
      try {
        await keep(message);
      } catch (error) {
        return { kind: "unavailable", reason: `not kept: ${error instanceof Error ? error.message : error}` };
      }
      print(lineOf(message));
      return { kind: "accepted" };
    },
  } satisfies Provider;
}
