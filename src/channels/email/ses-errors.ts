// What Amazon's errors amount to.

import type { Category } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";
import type { HttpAnswer } from "#wire/http.ts";
import { AWAY, BAD_CONTENT, BAD_CREDENTIALS, BROKE, type Failed, LIMITED, type Verdict } from "#wire/verdict.ts";

type Rule = Verdict & {
  /** Unless it says this. */
  unless?: { says: RegExp; category: Category };
  /** Amazon explains a bad signature by showing what should have been signed, session token included. */
  isSecret?: true;
};
const SECRET: Rule = { ...BAD_CREDENTIALS, isSecret: true };

/** By the error's own name. */
const ERRORS: { readonly [name: string]: Rule } = {
  // A sender, or in the sandbox a recipient, that SES does not know yet is told as a rejected message too.
  MessageRejected: { ...BAD_CONTENT, unless: { says: /not verified/, category: "credentials" } },
  BadRequestException: BAD_CONTENT,
  ValidationException: BAD_CONTENT,
  NotFoundException: BAD_CONTENT,
  MailFromDomainNotVerifiedException: BAD_CREDENTIALS,
  AccountSuspendedException: BAD_CREDENTIALS,
  // Paused by somebody, perhaps for a while: what waits now can go out when it is lifted.
  SendingPausedException: { kind: "unavailable", category: "credentials" },
  TooManyRequestsException: LIMITED,
  ThrottlingException: LIMITED,
  Throttling: LIMITED,
  // The quota of a day or of a second.
  LimitExceededException: LIMITED,
  AccessDeniedException: SECRET,
  ExpiredTokenException: SECRET,
  IncompleteSignature: SECRET,
  InvalidClientTokenId: SECRET,
  InvalidSignatureException: SECRET,
  MissingAuthenticationTokenException: SECRET,
  NotAuthorized: SECRET,
  OptInRequired: SECRET,
  RequestExpired: SECRET,
  SignatureDoesNotMatch: SECRET,
  UnrecognizedClientException: SECRET,
  ServiceUnavailable: AWAY,
  ServiceUnavailableException: AWAY,
};
const STATUSES: { readonly [status: number]: Rule } = {
  401: SECRET,
  403: SECRET,
  429: LIMITED,
  503: AWAY,
};

/** What an answer that is no success amounts to. */
export function failureOf({ status, header, text }: HttpAnswer): Failed {
  const fields = fieldsOf(text);
  const type = header("x-amzn-errortype") ?? fields.__type ?? fields.code;
  // `com.amazon.coral#Name` and `Name:http://…` are also seen.
  const name = typeof type === "string" ? (/(?:^|#)([A-Za-z]+)(?::|$)/.exec(type)?.[1] ?? "") : "";
  const named = Object.hasOwn(ERRORS, name) ? ERRORS[name] : undefined;
  // Behind a 5xx the request may have been taken, or not.
  const rule: Rule = named ?? STATUSES[status] ?? (status >= 500 ? BROKE : BAD_CONTENT);
  const said = fields.message ?? fields.Message;
  const words = typeof said === "string" && !rule.isSecret ? said : `answered ${status}`;
  const told = {
    reason: oneLine(name === "" ? words : `${name}: ${words}`),
    code: name === "" ? String(status) : name,
  };
  const { kind, category, unless } = rule;
  return { kind, category: unless?.says.test(words) ? unless.category : category, ...told };
}

export function fieldsOf(text: string): { readonly [name: string]: unknown } {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}
