// A mail as it goes over the wire.

import MailComposer from "nodemailer/lib/mail-composer";
import type { Mail } from "./mail.ts";

export type Mime = { envelope: { from: string; to: string[] }; bytes: Buffer };

const plain = (address: string) => ({ name: "", address });

export async function mimeOf(mail: Mail, now: number): Promise<Mime> {
  const { from, to, cc, bcc, replyTo, subject, text, html, attachments, headers, messageId } = mail;
  const node = new MailComposer({
    from: { name: from.name ?? "", address: from.address },
    to: plain(to),
    cc: cc.map(plain),
    // In the envelope only: the composer leaves it out of the headers.
    bcc: bcc.map(plain),
    ...(replyTo !== undefined && { replyTo: plain(replyTo) }),
    subject,
    text,
    ...(html !== undefined && { html }),
    attachments: attachments.map(({ filename, contentType, content }) => ({
      filename,
      contentType,
      content: Buffer.from(content, "base64"),
      contentDisposition: "attachment",
    })),
    headers: { ...headers },
    messageId,
    date: new Date(now),
    // Content comes from strangers: nothing in it may name a file or a URL to be read by us.
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
  const envelope = node.getEnvelope();
  return { envelope: { from: envelope.from || from.address, to: envelope.to }, bytes: await node.build() };
}
