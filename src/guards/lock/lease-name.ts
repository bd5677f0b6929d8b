// What the Lease of a key is called: a DNS label, and never the same for two keys.

import { createHash } from "node:crypto";

const PREFIX = "notification-delivery-";
const MOST = 63;
const HASH = 16;
/** Two hyphens stand before a hash, so a key that needs none may not have them. */
const PLAIN = /^[a-z0-9]+(-[a-z0-9]+)*$/;

export function leaseNameOf(key: string): string {
  const plain = PREFIX + key;
  if (PLAIN.test(key) && plain.length <= MOST) return plain;
  const hash = createHash("sha256").update(key).digest("hex").slice(0, HASH);
  const words = key
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MOST - PREFIX.length - HASH - 2)
    .replace(/^-+|-+$/g, "");
  return words ? `${PREFIX}${words}--${hash}` : PREFIX + hash;
}
