// The notification inside a recurring schedule or a reminder: everything but its time, for one recipient or several.

import { type Static, Type } from "typebox";
import { NotificationRequest, Recipient, strict } from "./notification.ts";
import type { Fault } from "./problems.ts";
import { faultsOfRequest } from "./validate.ts";

// Each time it is sent is a story of its own, and no part of the trace in which it was planned.
const {
  scheduledFor: _s,
  expiresAt: _e,
  idempotencyKey: _i,
  traceparent: _p,
  tracestate: _t,
  ...timeless
} = NotificationRequest.properties;

export const Notice = strict({
  ...timeless,
  recipients: Type.Optional(Type.Array(Recipient, { minItems: 1, maxItems: 500 })),
});
export type Notice = Static<typeof Notice>;

/** A request for each recipient. */
export function requestsOf({ recipients, ...notice }: Notice): NotificationRequest[] {
  return recipients ? recipients.map((recipient) => ({ ...notice, recipient })) : [notice];
}

export const recipientsOf = ({ recipients }: Notice): number => recipients?.length ?? 1;

/** What a notice may come to for all its recipients together: 500 of 64 kB each. */
export const MAX_NOTICE_BYTES = 32 * 1024 * 1024;

/** How many bytes of JSON its requests come to. */
export function bytesOf({ recipients, ...notice }: Notice): number {
  const each = jsonBytes(notice);
  return recipients ? each * recipients.length + jsonBytes(recipients) : each;
}

/** The requests from the recipient `from` on, one at least, as many as `mostBytes` hold. */
export function chunkOf(notice: Notice, from: number, mostBytes: number): NotificationRequest[] {
  const { recipients: _, ...rest } = notice;
  const each = jsonBytes(rest);
  let bytes = 0;
  const requests = requestsOf(notice).slice(from);
  const most = requests.findIndex(({ recipient }, n) => {
    bytes += each + jsonBytes(recipient ?? {});
    return bytes > mostBytes && n > 0;
  });
  return most < 0 ? requests : requests.slice(0, most);
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** What a send of it would be refused for; `path` is where the notice stands in the body. */
export function faultsOfNotice(notice: Notice, path: string, now: Date): Fault[] {
  const { recipients, ...rest } = notice;
  if (!recipients) return faultsOfRequest(rest, now).map((fault) => ({ ...fault, path: path + fault.path }));
  if (rest.recipient) return [{ path: `${path}/recipients`, message: "must not stand beside recipient" }];
  const tooLarge = faultsOfSize(notice, path);
  if (tooLarge.length > 0) return tooLarge;
  return recipients.flatMap((recipient, n) =>
    faultsOfRecipient(rest, recipient, n, now).map((fault) => ({
      path: path + fault.path.replace(/^\/recipient(?=\/|$)/, `/recipients/${n}`),
      message: fault.message,
    })),
  );
}

/** Every recipient gets all of the content: that adds up. */
export function faultsOfSize(notice: Notice, path: string): Fault[] {
  if (bytesOf(notice) <= MAX_NOTICE_BYTES) return [];
  const message = `must come to at most ${MAX_NOTICE_BYTES} bytes with the content for each; use a template, or several notices`;
  return [{ path: `${path}/recipients`, message }];
}

/** The content is the same for all of them, and may be long: it is looked at with the first. */
function faultsOfRecipient(notice: NotificationRequest, recipient: object, n: number, now: Date): Fault[] {
  if (n === 0) return faultsOfRequest({ ...notice, recipient }, now);
  const { channel } = notice;
  return faultsOfRequest({ channel, recipient, content: {} }, now).filter(({ path }) => path.startsWith("/recipient"));
}
