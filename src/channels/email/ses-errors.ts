// What Amazon's errors amount to.

import type { Category, Reply } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";
import type { HttpAnswer } from "#wire/http.ts";

type Rule = {
  kind: Exclude<Reply["kind"], "accepted">;
  category: Category;
  /** Unless it says this. */
  unless?: { says: RegExp; category: Category };
  /** Amazon explains a bad signature by showing what should have been signed, session token included. */
  isSecret?: true;
};
const CREDENTIALS: Rule = { kind: "rejected", category: "credentials", isSecret: true };
const THROTTLED: Rule = { kind: "limited", category: "throttled" };

/** By the error's own name. */
const ERRORS: { readonly [name: string]: Rule } = {
  // A sender, or in the sandbox a recipient, that SES does not know yet is told as a rejected message too.
  MessageRejected: { kind: "rejected", category: "content", unless: { says: /not verified/, category: "credentials" } },
  BadRequestException: { kind: "rejected", category: "content" },
  ValidationException: { kind: "rejected", category: "content" },
  NotFoundException: { kind: "rejected", category: "content" },
  MailFromDomainNotVerifiedException: { kind: "rejected", category: "credentials" },
  AccountSuspendedException: { kind: "rejected", category: "credentials" },
  // Paused by somebody, perhaps for a while: what waits now can go out when it is lifted.
  SendingPausedException: { kind: "unavailable", category: "credentials" },
  TooManyRequestsException: THROTTLED,
  ThrottlingException: THROTTLED,
  Throttling: THROTTLED,
  // The quota of a day or of a second.
  LimitExceededException: THROTTLED,
  AccessDeniedException: CREDENTIALS,
  ExpiredTokenException: CREDENTIALS,
  IncompleteSignature: CREDENTIALS,
  InvalidClientTokenId: CREDENTIALS,
  InvalidSignatureException: CREDENTIALS,
  MissingAuthenticationTokenException: CREDENTIALS,
  NotAuthorized: CREDENTIALS,
  OptInRequired: CREDENTIALS,
  RequestExpired: CREDENTIALS,
  SignatureDoesNotMatch: CREDENTIALS,
  UnrecognizedClientException: CREDENTIALS,
  ServiceUnavailable: { kind: "unavailable", category: "outage" },
  ServiceUnavailableException: { kind: "unavailable", category: "outage" },
};
const STATUSES: { readonly [status: number]: Rule } = {
  401: CREDENTIALS,
  403: CREDENTIALS,
  429: THROTTLED,
  503: { kind: "unavailable", category: "outage" },
};

/** What an answer that is no success amounts to. */
export function failureOf({ status, header, text }: HttpAnswer): Exclude<Reply, { kind: "accepted" }> {
  const fields = fieldsOf(text);
  const named = header("x-amzn-errortype") ?? fields.__type ?? fields.code;
  // `com.amazon.coral#Name` and `Name:http://…` are also seen.
  const name = typeof named === "string" ? (/(?:^|#)([A-Za-z]+)(?::|$)/.exec(named)?.[1] ?? "") : "";
  const rule = (Object.hasOwn(ERRORS, name) ? ERRORS[name] : undefined) ?? STATUSES[status];
  const said = fields.message ?? fields.Message;
  const words = typeof said === "string" && !rule?.isSecret ? said : `answered ${status}`;
  const told = {
    reason: oneLine(name === "" ? words : `${name}: ${words}`),
    code: name === "" ? String(status) : name,
  };
  if (rule) {
    const { kind, category, unless } = rule;
    return { kind, category: unless?.says.test(words) ? unless.category : category, ...told };
  }
  // Behind a 5xx the request may have been taken, or not.
  return status >= 500
    ? { kind: "ambiguous", category: "outage", ...told }
    : { kind: "rejected", category: "content", ...told };
}

export function fieldsOf(text: string): { readonly [name: string]: unknown } {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}
