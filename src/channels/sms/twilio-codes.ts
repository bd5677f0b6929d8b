// Twilio's error codes, as far as they decide what becomes of a message. The first part answers a send, the second comes
// later with a status report; some come either way.

import {
  AWAY,
  BAD_CONTENT,
  BAD_CREDENTIALS,
  BAD_RECIPIENT,
  BROKE,
  DEAD,
  LIMITED,
  type Verdict,
} from "#wire/verdict.ts";

export const TWILIO_VERDICTS: { readonly [code: string]: Verdict } = {
  // The number
  "21211": DEAD, // not a phone number
  "21214": DEAD, // cannot be reached
  "21265": DEAD, // a short code
  "21610": DEAD, // has opted out by STOP
  "21614": DEAD, // not a mobile number
  "21604": BAD_RECIPIENT, // none given
  // From this sender it cannot be reached, from another it might.
  "21612": BAD_RECIPIENT,
  // The text
  "21602": BAD_CONTENT, // empty
  "21605": BAD_CONTENT, // too long
  "21617": BAD_CONTENT, // more than 1600 characters
  "21619": BAD_CONTENT, // neither text nor media
  // The account or its senders
  "10001": BAD_CREDENTIALS, // account not active
  "20003": BAD_CREDENTIALS, // wrong SID or token
  "20005": BAD_CREDENTIALS, // account not active
  "20404": BAD_CREDENTIALS, // no such account
  "21212": BAD_CREDENTIALS, // From is no number
  "21408": BAD_CREDENTIALS, // the account may not send to this region
  "21603": BAD_CREDENTIALS, // From missing
  "21606": BAD_CREDENTIALS, // From is not ours, or sends no SMS
  "21608": BAD_CREDENTIALS, // a trial account sends to verified numbers only
  "21659": BAD_CREDENTIALS, // From is not a Twilio number
  "21660": BAD_CREDENTIALS, // From belongs to another account
  "21701": BAD_CREDENTIALS, // no such messaging service
  "21703": BAD_CREDENTIALS, // the messaging service has no senders
  "30002": BAD_CREDENTIALS, // account suspended
  // Too much at once
  "14107": LIMITED,
  "20429": LIMITED,
  "21611": LIMITED, // the sender's queue is full
  "30001": LIMITED, // queue overflow
  "30022": LIMITED, // the carrier's rate
  // The account's messages for today are used up. An hour is a guess that costs few attempts; the limit ends at midnight.
  "63038": { ...LIMITED, retryAfterMs: 3_600_000 },
  // Twilio itself
  "20500": BROKE,
  "20503": AWAY,
  "21730": AWAY, // maintenance
};

type Failing = { reason: string; suppress?: "bounce" | "complaint" };

/**
 * Why an accepted message did not arrive. A number is suppressed only where no later message could arrive either: to
 * lose a person is worse than to pay for a segment.
 */
export const TWILIO_FAILURES: { readonly [code: string]: Failing } = {
  "21610": { reason: "the recipient has opted out", suppress: "complaint" },
  "30001": { reason: "the sender's queue was full" },
  "30002": { reason: "the account was suspended" },
  // Switched off or out of reach, most often: tomorrow it may be back.
  "30003": { reason: "the phone cannot be reached" },
  "30004": { reason: "the message was blocked" },
  // The network does not know the number: it was given up.
  "30005": { reason: "the number does not exist any more", suppress: "bounce" },
  // A landline, or for short codes a carrier that does not take them: neither changes for this sender.
  "30006": { reason: "a landline, or a carrier that cannot be reached", suppress: "bounce" },
  "30007": { reason: "the carrier filtered the message" },
  "30008": { reason: "the carrier gave no reason" },
  "30022": { reason: "the carrier's rate limit was passed" },
  "30034": { reason: "the sender is not registered for A2P 10DLC" },
};
