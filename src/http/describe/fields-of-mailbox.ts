// What the fields of the mailbox mean; see fields-of-notifications.ts.

import type { Fields } from "./describe.ts";

const ID = ["The message's id; later ones are larger", "42"] as const;

export const OF_MAILBOX: Fields = {
  "KeptMessage.id": ID,
  "WholeMessage.id": ID,
  "Development.id": ID,
  "KeptMessage.at": "When it was kept",
  "WholeMessage.at": "When it was kept",
  "KeptMessage.to": ["Everybody it would have gone to, in lower case", ["ana@example.com"]],
  "WholeMessage.to": ["Everybody it would have gone to, in lower case", ["ana@example.com"]],
  message: [
    "The request, with its template filled in; for push with the device",
    { channel: "email", recipient: { email: "ana@example.com" }, content: { subject: "Your order has shipped" } },
  ],
  "devMessagesList.to": ["Any of its recipients, whole", "ana@example.com"],
  "devMessagesList.search": ["Some of its words", "order"],
  "devMessagesList.after": ["Of a message that is known already: later ones only", "41"],
  "devMessagesList.cursor": ["`nextCursor` of the page before", "41"],
  wait: ["For how long to wait until something fits, 60s at most", "10s"],
  "devMessagesAttachment.index": ["Which of the attachments; 0 is the first", "0"],
  wire: "As the channel's own provider would have sent it; not of what an older release kept",
  as: ["Whose way of writing it is", "smtp"],
  "wire.type": ["Its media type", "message/rfc822"],
  "wire.body": ["All of it", "From: bell@example.com\r\nTo: ana@example.com\r\n"],
  "wire.attempt": ["The attempt at its notification that it was, 1 for the first", 1],
  "wire.headers": ["Headers of the request, its signature included", { "webhook-timestamp": "1798794000" }],
  "wire.url": ["Where it would have been posted", "https://app.example.com/hook"],
  mail: "Of a mail: who gets it, and what it says in plain text",
  "mail.from": ["Who it is from", "Example <bell@example.com>"],
  "mail.to": ["Who it goes to", ["ana@example.com"]],
  "mail.cc": ["Who gets a copy", ["ben@example.com"]],
  "mail.bcc": ["Who gets a copy that nobody sees", ["log@example.com"]],
  "mail.replyTo": ["Where answers go", "help@example.com"],
  "mail.subject": ["Its subject", "Your order has shipped"],
  "mail.text": ["Its text", "Your order has shipped."],
  "mail.headers": ["Headers besides the usual ones", { "X-Order": "4711" }],
  "mail.messageId": ["Its name for other mails", "<018f2c1d-7000-7000-8000-000000000000@example.com>"],
  sms: "Of a text message: what carriers make of it",
  encoding: ["In which letters it goes", "GSM-7"],
  segments: ["How many messages it becomes", 1],
  characters: ["How long it is", 23],
};
