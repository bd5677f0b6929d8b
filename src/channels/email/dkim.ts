// Signs mails for receivers who ask whether the sender's domain stands behind them (RFC 6376).

import DKIM from "nodemailer/lib/dkim";
import { readPrivateKey } from "#wire/jwt.ts";

/** `privateKey` is PEM. */
export type DkimSettings = { domain: string; selector: string; privateKey: string };

// What we write ourselves. nodemailer's own list lacks List-Unsubscribe-Post, which RFC 8058 wants signed.
const SIGNED_HEADERS = [
  ...["From", "Reply-To", "Subject", "Date", "Message-ID", "To", "MIME-Version", "Content-Type"],
  ...["Content-Transfer-Encoding", "List-Unsubscribe", "List-Unsubscribe-Post"],
].join(":");

/** A key that cannot be read is told now, not with the first mail. */
export function dkimSigner({ domain, selector, privateKey }: DkimSettings): (mail: Buffer) => Promise<Buffer> {
  const signer = new DKIM({
    domainName: domain,
    keySelector: selector,
    privateKey: readPrivateKey(privateKey, "rsa", "smtp", "/dkim/privateKey"),
    headerFieldNames: SIGNED_HEADERS,
  });
  return async (mail) => {
    const parts: Buffer[] = [];
    for await (const part of signer.sign(mail)) parts.push(part);
    return Buffer.concat(parts);
  };
}
