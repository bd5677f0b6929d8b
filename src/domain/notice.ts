// The notification inside a recurring schedule or a reminder: everything but its time, for one recipient or several.

import { type Static, Type } from "typebox";
import { NotificationRequest, Recipient, strict } from "./notification.ts";
import type { Fault } from "./problems.ts";
import { faultsOfRequest } from "./validate.ts";

const { scheduledFor: _s, expiresAt: _e, idempotencyKey: _i, ...timeless } = NotificationRequest.properties;

export const Notice = strict({
  ...timeless,
  recipients: Type.Optional(Type.Array(Recipient, { minItems: 1, maxItems: 500 })),
});
export type Notice = Static<typeof Notice>;

/** Kept at a time when callbacks could be asked for and none came. */
type Kept = Notice & { callbackUrl?: unknown; callbackPolicy?: unknown };

/** A request for each recipient. */
export function requestsOf({
  recipients,
  callbackUrl: _u,
  callbackPolicy: _p,
  ...notice
}: Kept): NotificationRequest[] {
  return recipients ? recipients.map((recipient) => ({ ...notice, recipient })) : [notice];
}

/** What a send of it would be refused for; `path` is where the notice stands in the body. */
export function faultsOfNotice(notice: Notice, path: string, now: Date): Fault[] {
  if (notice.recipients && notice.recipient) {
    return [{ path: `${path}/recipients`, message: "must not stand beside recipient" }];
  }
  const requests = requestsOf(notice);
  return requests.flatMap((request, n) =>
    faultsOfRequest(request, now).map((fault) => ({
      path: path + (notice.recipients ? fault.path.replace(/^\/recipient(?=\/|$)/, `/recipients/${n}`) : fault.path),
      message: fault.message,
    })),
  );
}
