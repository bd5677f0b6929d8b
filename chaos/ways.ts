// Which way a notification of a run takes, and how those ways behave: accounts with providers, and tenants' own receivers.
//
// `post` fails in every way now and then, `wire` never does. Of the receivers some are always well, one never answers, one is away,
// and one asks for a pause: what happens to these must not happen to the others. Most of what goes to receivers fails.

import type { NotificationRequest } from "#domain/notification.ts";

export const RECEIVERS = ["well", "silent", "away", "throttles"] as const;
export type Receiver = (typeof RECEIVERS)[number];

export const urlOf = (receiver: Receiver): string => `https://${receiver}.example/hook`;

export function receiverOf({ recipient }: Pick<NotificationRequest, "recipient">): Receiver | undefined {
  return RECEIVERS.find((receiver) => recipient?.webhookUrl === urlOf(receiver));
}

export const originOf = (receiver: Receiver): string => `https://${receiver}.example`;

/** As guards tell them apart: a receiver belongs to its tenant. */
export function wayOf(tenant: number, request: NotificationRequest): string {
  const receiver = receiverOf(request);
  if (receiver) return `${receiver} of ${tenant}`;
  return request.channel === "sms" ? "wire" : "post";
}

/** Nothing that goes this way ever fails by itself. */
export const isWell = (way: string): boolean => way.startsWith("well") || way === "wire";
