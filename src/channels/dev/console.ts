// Shows messages on standard output: what a developer without credentials wants to see.

import type { Message, Provider } from "#channels/channel.ts";
import { CHANNELS } from "#domain/notification.ts";

export function consoleProvider(print: (line: string) => void): Provider {
  return {
    name: "console",
    channels: CHANNELS,
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    encode: (message) => ({ type: "text/plain", body: lineOf(message) }),
    send(message) {
      print(lineOf(message));
      return { kind: "accepted" };
    },
  };
}

export function lineOf({ request: { channel, priority = "normal", recipient = {}, content } }: Message): string {
  const to = recipient.email ?? recipient.phone ?? recipient.slackChannel ?? recipient.webhookUrl ?? recipient.userId;
  const head = content.subject ?? content.title;
  const text = content.body ?? content.textBody ?? (content.templateId && `template ${content.templateId}`) ?? "";
  const says = [head, text].filter(Boolean).join(": ");
  // JSON escapes what could otherwise move the cursor or forge a line.
  return `[${channel}, ${priority}]${to ? ` to ${to}` : ""} ${JSON.stringify(says)}`;
}
