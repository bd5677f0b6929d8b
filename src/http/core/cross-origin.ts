// What pages of other origins may do: read and mark inboxes, if their origin is configured. And where a subscriber's
// token may come from, besides the header Authorization: a cookie, which no page can read.

import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "#domain/problems.ts";

const PREFIX = "/v1/inbox/";
const COOKIE = "carillon_inbox";
const PREFLIGHT_SECONDS = 7_200;

type Headers = { [name: string]: string };

/** The headers that let a page read the answer; none when its origin is not configured, or nothing to do with inboxes. */
export function corsHeaders(
  url: string,
  headers: IncomingHttpHeaders,
  allowed: readonly string[],
): Headers | undefined {
  const { origin } = headers;
  if (origin === undefined || !url.startsWith(PREFIX) || !allowed.includes(origin)) return undefined;
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "x-request-id, retry-after",
    "cross-origin-resource-policy": "cross-origin",
    vary: "origin",
  };
}

export const PREFLIGHT_HEADERS: Headers = {
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers": "authorization, content-type, last-event-id, cache-control",
  "access-control-max-age": String(PREFLIGHT_SECONDS),
};

/**
 * The token in the cookie. SameSite keeps it from requests of other sites, but not from those of other hosts of the same site:
 * they must be configured as well.
 */
export function cookieToken(headers: IncomingHttpHeaders, allowed: readonly string[]): string | undefined {
  const { cookie, origin, host } = headers;
  if (cookie === undefined) return undefined;
  const found = cookie.split(";").flatMap((pair) => {
    const [name, value] = pair.trim().split("=", 2);
    return name === COOKIE && value ? [value] : [];
  })[0];
  if (found === undefined) return undefined;
  const isOwn = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
  if (!isOwn && !allowed.includes(origin)) {
    throw new Problem("FORBIDDEN", "pages of this origin may not use the session");
  }
  return found;
}

/** Kept by the browser until the token expires; `Secure` wherever TLS is known to be in front. */
export function sessionCookie(token: string, maxAgeSeconds: number, isSecure: boolean): string {
  const secure = isSecure ? "; Secure" : "";
  return `${COOKIE}=${token}; Path=${PREFIX.slice(0, -1)}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}
