// The cookie that stands for a key, for people at the dashboard, and who may come with it.
//
// SameSite=Strict keeps it from requests that other sites cause. Hosts of the same site are let in by that, so a request
// must say besides that it comes from our own pages: by Sec-Fetch-Site where the browser sends it, which is wherever the
// connection or the host is trusted, else by Origin. What changes something and says neither is refused.

import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "#domain/problems.ts";

const NAME = "carillon_session";
/** No other host and no plain connection can set one of this name. */
const SECURE_NAME = `__Host-${NAME}`;

export const isSecure = (headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean =>
  publicUrl?.startsWith("https:") || headers["x-forwarded-proto"] === "https";

/** The token of the session, or the problem thrown when the request is not of our own pages. */
export function sessionToken(
  method: string,
  headers: IncomingHttpHeaders,
  publicUrl: string | undefined,
): string | undefined {
  const name = isSecure(headers, publicUrl) ? SECURE_NAME : NAME;
  const token = headers.cookie
    ?.split(";")
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1);
  if (!token) return undefined;
  if (!isOwn(method, headers, publicUrl)) {
    throw new Problem("FORBIDDEN", "a session is for the pages of this service only; elsewhere send an API key");
  }
  return token;
}

function isOwn(method: string, headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  const isRead = method === "GET" || method === "HEAD";
  const { origin, host, "sec-fetch-site": site } = headers;
  // `none`: somebody typed the address, or opened a bookmark.
  if (site !== undefined && site !== "same-origin" && !(isRead && site === "none")) return false;
  if (origin === undefined) return isRead || site === "same-origin";
  if (!URL.canParse(origin)) return false;
  const from = new URL(origin);
  return from.host === host || (publicUrl !== undefined && from.origin === new URL(publicUrl).origin);
}

export function cookieOfSession(token: string, maxAgeSeconds: number, secure: boolean): string {
  const rest = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
  return secure ? `${SECURE_NAME}=${token}; ${rest}; Secure` : `${NAME}=${token}; ${rest}`;
}
