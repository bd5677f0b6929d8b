// What was handed to a provider in an attempt and what it answered, as it may stand in the record: the beginning of each, without credentials.

import { cut, storable } from "./text.ts";

export type Exchange = {
  /** As it is before the provider's credentials are added. */
  request?: { type: string; body: string };
  answer?: { status: number; body: string };
};

export const EXCHANGES = ["off", "failures", "all"] as const;
export type Exchanges = (typeof EXCHANGES)[number];

/** Kept of each. */
export const MOST_KEPT = 1_024;
/** Looked through: a secret that begins in what is kept may end beyond it. */
const MOST_LOOKED = MOST_KEPT + 8_192;
const LEAST_SECRET = 8;

/** What is nobody's secret; whatever else a provider was told may be one. */
const OPEN = new Set([
  ...["type", "from", "fromName", "replyTo", "allowFrom", "unsubscribeUrl", "headers", "host", "region", "path"],
  ...["topic", "subject", "project_id", "client_email"],
]);

/** Words after which a secret stands, and forms that only secrets have. A page that shows us our own headers is no rarity. */
const SECRETS = [
  /(?<=\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}/gi,
  /(?<=(?:authorization|api[-_ ]?key|access[-_ ]?token|auth[-_ ]?token|secret|password|passwd|signature)["']?\s*[:=]\s*["']?)[^\s"'&,;<>]{4,}/gi,
  /\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}/g,
];

export type Redact = (text: string) => string;

/** For a provider of these settings. Each character of a secret becomes a star, so that nothing moves. */
export function redactor(settings: unknown): Redact {
  const secrets = [...new Set(secretsIn(settings).flatMap(formsOf))].sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const secret of secrets) clean = clean.replaceAll(secret, stars);
    for (const form of SECRETS) clean = clean.replace(form, stars);
    return clean;
  };
}

const stars = (secret: string): string => "*".repeat(secret.length);

function secretsIn(value: unknown): string[] {
  if (typeof value === "string") return partsOf(value).filter((part) => part.length >= LEAST_SECRET);
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => (OPEN.has(name) ? [] : secretsIn(inner)));
}

/** Of a URL all but the host may be one; a key may be quoted line by line. */
function partsOf(text: string): string[] {
  const url = URL.parse(text);
  if (!url) return text.split(/\s+/);
  const { username, password, pathname, searchParams } = url;
  return [username, password, ...pathname.split("/"), ...searchParams.values()];
}

/** As somebody may say it back. */
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  Buffer.from(secret).toString("base64"),
];

/** Its beginning, as it may be kept. */
export const kept = (text: string, redact: Redact): string => storable(cut(redact(cut(text, MOST_LOOKED)), MOST_KEPT));
