// Reads a request that Twilio signed with the account's token.
//
// The signature covers the URL exactly as Twilio called it and the fields of a form. A body that is no form is covered
// by its hash in the URL. Without that hash a body is always read as a form, so nothing unsigned is ever believed.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { ReportRequest } from "#channels/channel.ts";
import { jsonOf } from "#wire/json-answer.ts";

/** The fields of the request; undefined when the signature does not hold. */
export function signedFields(request: ReportRequest, authToken: string): { [name: string]: string } | undefined {
  const { url, header, body } = request;
  const signature = header("x-twilio-signature");
  if (!signature || !URL.canParse(url)) return undefined;
  const bodyHash = new URL(url).searchParams.get("bodySHA256");
  if (bodyHash === null) {
    const form = new URLSearchParams(body.toString("utf8"));
    return isSigned(url, partsOf(form), signature, authToken) ? Object.fromEntries(form) : undefined;
  }
  const isBody = isSame(createHash("sha256").update(body).digest("hex"), bodyHash.toLowerCase());
  return isBody && isSigned(url, "", signature, authToken) ? fieldsOf(request) : undefined;
}

/** Names in order, each followed by its values; the same value twice counts once. */
function partsOf(form: URLSearchParams): string {
  const names = [...new Set(form.keys())].sort();
  return names
    .map((name) =>
      [...new Set(form.getAll(name))]
        .sort()
        .map((value) => name + value)
        .join(""),
    )
    .join("");
}

/** Some of Twilio's servers sign with the port and some without, whatever the URL says. */
function isSigned(url: string, parts: string, signature: string, authToken: string): boolean {
  const [, scheme = "", host = "", rest = ""] = /^(https?:\/\/)([^/?#]*?)(?::\d+)?([/?#].*)?$/is.exec(url) ?? [];
  const port = scheme.toLowerCase() === "https://" ? 443 : 80;
  const forms = [url, `${scheme}${host}${rest}`, `${scheme}${host}:${port}${rest}`];
  const sign = (one: string) =>
    createHmac("sha1", authToken)
      .update(one + parts, "utf8")
      .digest("base64");
  return forms.some((one) => isSame(sign(one), signature));
}

function isSame(expected: string, found: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(found)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function fieldsOf({ header, body }: ReportRequest): { [name: string]: string } {
  const text = body.toString("utf8");
  if (!header("content-type")?.includes("json")) return Object.fromEntries(new URLSearchParams(text));
  const fields = jsonOf(text);
  if (typeof fields !== "object" || fields === null) return {};
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => ["string", "number"].includes(typeof value))
      .map(([name, value]) => [name, String(value)]),
  );
}
