// What all e-mail providers say and do alike: they carry one mail at a time, attachments included, and get it made of the
// message before they are asked to.

import type { Capabilities, Encoded, Provider, SendOptions } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { type Mail, type MailSettings, mailFaults, mailOf } from "./mail.ts";

/** What each does in its own way. It tracks what it sent if it reads reports. */
export type MailCarrier = Pick<Provider, "name" | "check" | "report" | "close"> & {
  capabilities: Pick<Capabilities, "maxBytes" | "abreast" | "cost">;
  /** As carry() puts it on the wire. */
  encode(mail: Mail): Encoded | Promise<Encoded>;
  carry(mail: Mail, options: SendOptions): Promise<Reply>;
};

export function mailProvider({ capabilities, encode, carry, ...own }: MailCarrier, settings: MailSettings): Provider {
  return {
    ...own,
    channels: ["email"],
    capabilities: {
      batch: 1,
      attachments: true,
      tracking: own.report !== undefined,
      reconciles: false,
      ...capabilities,
    },
    validate: (request) => mailFaults(request, settings),
    encode(message) {
      const mail = mailOf(message, settings);
      return "kind" in mail ? mail : encode(mail);
    },
    async send(message, options) {
      const mail = mailOf(message, settings);
      return "kind" in mail ? mail : carry(mail, options);
    },
  } satisfies Provider;
}
