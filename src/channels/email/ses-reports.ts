// What Amazon SES tells through SNS about mails it accepted: as feedback of an identity (`notificationType`) or as events
// of a configuration set (`eventType`), which look alike otherwise.

import type { Report } from "#channels/channel.ts";
import { oneLine } from "#domain/said.ts";
import type { SnsMessage } from "./sns.ts";

type Fields = { readonly [name: string]: unknown };
type Meaning = Pick<Report, "kind" | "reason" | "code"> & { suppress?: "bounce" | "complaint" };

/** What is not here says nothing about delivery: Send, Open, Click, DeliveryDelay, Subscription. */
const EVENTS: { readonly [type: string]: (event: Fields) => Meaning } = {
  Delivery: () => ({ kind: "delivered" }),
  Bounce({ bounce }) {
    const { bounceType, bounceSubType, bouncedRecipients } = fieldsOf(bounce);
    const [first] = Array.isArray(bouncedRecipients) ? bouncedRecipients : [];
    const { status, diagnosticCode } = fieldsOf(first);
    return {
      kind: "failed",
      // SES has tried for hours when it reports a transient bounce, so this mail is lost. The address is not: a mailbox
      // that is full today is read tomorrow.
      ...(bounceType === "Permanent" && { suppress: "bounce" }),
      reason: words(diagnosticCode, `${bounceType} bounce, ${bounceSubType}`),
      ...(typeof status === "string" && status !== "" && { code: status }),
    };
  },
  Complaint({ complaint }) {
    const { complaintSubType, complaintFeedbackType } = fieldsOf(complaint);
    // Who complains has got it, unless SES kept it back because of a complaint before.
    return complaintSubType === "OnAccountSuppressionList"
      ? { kind: "failed", suppress: "complaint", reason: "on the suppression list of the account" }
      : {
          kind: "delivered",
          suppress: "complaint",
          ...(typeof complaintFeedbackType === "string" && { code: oneLine(complaintFeedbackType) }),
        };
  },
  Reject: ({ reject }) => ({ kind: "failed", reason: words(fieldsOf(reject).reason, "rejected") }),
  "Rendering Failure": ({ failure }) => ({
    kind: "failed",
    reason: words(fieldsOf(failure).errorMessage, "not rendered"),
  }),
};

export function sesReports({ id, type, at, text }: SnsMessage): Report[] {
  if (type !== "Notification") return [];
  const event = fieldsOf(parse(text));
  const name = event.eventType ?? event.notificationType;
  const meaning = typeof name === "string" && Object.hasOwn(EVENTS, name) ? EVENTS[name]?.(event) : undefined;
  const { messageId, destination } = fieldsOf(event.mail);
  if (!meaning || typeof messageId !== "string") return [];
  const { suppress, ...told } = meaning;
  const addresses = whomItIsAbout(event, Array.isArray(destination) ? destination : []);
  return addresses.map((address, n) => ({
    receipt: messageId,
    // Of a mail with copies one message may be about several.
    reportId: n === 0 ? id : `${id} ${n}`,
    at,
    ...told,
    ...(address !== undefined && { address }),
    ...(suppress && address !== undefined && { suppress: { address, why: suppress } }),
  }));
}

/**
 * Those that the event names, of those the mail went to. If it names others, these are whom the recipient, who stands first,
 * forwards to.
 */
function whomItIsAbout({ delivery, bounce, complaint }: Fields, destination: unknown[]): (string | undefined)[] {
  const { recipients } = fieldsOf(delivery);
  const { bouncedRecipients } = fieldsOf(bounce);
  const { complainedRecipients } = fieldsOf(complaint);
  const lists = [recipients, bouncedRecipients, complainedRecipients].filter((list) => Array.isArray(list)).flat();
  const named = new Set(lists.map((one) => String(fieldsOf(one).emailAddress ?? one).toLowerCase()));
  const sent = destination.filter((address) => typeof address === "string");
  const about = sent.filter((address) => named.has(address.toLowerCase()));
  return about.length > 0 ? about : [sent[0]];
}

const words = (text: unknown, otherwise: string) => oneLine(typeof text === "string" && text !== "" ? text : otherwise);

const fieldsOf = (value: unknown): Fields => (value !== null && typeof value === "object" ? { ...value } : {});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The message by which SNS says that a topic works is plain text.
    return undefined;
  }
}
