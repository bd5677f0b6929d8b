// Sessions of people: `cs_<id>_<secret>`, in a cookie that no script can read. The id finds it, the hash of the whole proves it.

import { randomBytes } from "node:crypto";
import { hashOf } from "./api-key.ts";

const FORM = /^cs_([a-z0-9]{12})_[a-z0-9]{48}$/;

/** A working day. */
export const DEFAULT_SESSION_SECONDS = 43_200;
export const MAX_SESSION_SECONDS = 604_800;
/** Of one key. With one more the oldest ends. */
export const MOST_SESSIONS = 50;

export function newSession(): { id: string; token: string; hash: Buffer } {
  const id = randomBytes(6).toString("hex");
  const token = `cs_${id}_${randomBytes(24).toString("hex")}`;
  return { id, token, hash: hashOf(token) };
}

export const idOfSession = (token: string): string | undefined => FORM.exec(token)?.[1];
