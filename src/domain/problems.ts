// Every problem Carillon can answer with: one code, one status, one title (RFC 9457).
// docs/errors.md is checked against this table.

export type Fault = { path: string; message: string };

export const PROBLEMS = {
  MALFORMED_JSON: { status: 400, title: "The body is not valid JSON" },
  BAD_SIGNATURE: { status: 401, title: "The report was not signed by the provider" },
  UNAUTHENTICATED: { status: 401, title: "A valid API key is needed" },
  FORBIDDEN: { status: 403, title: "The API key lacks the scope for this" },
  NOT_FOUND: { status: 404, title: "There is no such thing" },
  METHOD_NOT_ALLOWED: { status: 405, title: "This path does not answer to that method" },
  NOT_CANCELLABLE: { status: 409, title: "The notification can no longer be cancelled" },
  NOT_RESCHEDULABLE: { status: 409, title: "The notification no longer waits" },
  NOT_RETRYABLE: { status: 409, title: "The notification has not ended, or was sent" },
  LAST_ADMIN_KEY: { status: 409, title: "Nobody could administer without this key" },
  IDEMPOTENCY_MISMATCH: { status: 409, title: "The idempotency key was used with another body" },
  IDEMPOTENCY_IN_PROGRESS: { status: 409, title: "A transaction with the same idempotency key is still open" },
  ENDPOINT_DISABLED: { status: 409, title: "The endpoint is disabled" },
  TOO_MANY_ENDPOINTS: { status: 409, title: "The tenant has as many endpoints as it may" },
  TOO_MANY_PLANS: { status: 409, title: "The tenant has as many open plans as it may" },
  PLAN_NOT_READY: { status: 409, title: "The plan does not stand as this needs it" },
  SINK_IN_USE: { status: 409, title: "The sink is configured, or a process runs it" },
  MOVE_REFUSED: { status: 409, title: "The queue cannot be moved now" },
  RESET: { status: 410, title: "What follows this position cannot be told without a gap" },
  PAYLOAD_TOO_LARGE: { status: 413, title: "The body is too large" },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: "The body must be application/json" },
  VALIDATION_FAILED: { status: 422, title: "The request is not valid" },
  TOO_MANY_FAILED_LOGINS: { status: 429, title: "Too many requests with a wrong API key" },
  TOO_MANY_REQUESTS: { status: 429, title: "Too many requests of this tenant are waiting" },
  TOO_MANY_STREAMS: { status: 429, title: "This user, or this tenant, has too many streams open" },
  BAD_REQUEST: { status: 400, title: "The request is not valid HTTP" },
  NOT_CONFIGURED: { status: 501, title: "This deployment is not set up for that" },
  INTERNAL: { status: 500, title: "Something went wrong on our side" },
  OVERLOADED: { status: 503, title: "Too many requests are waiting" },
  DATABASE_UNAVAILABLE: { status: 503, title: "The database does not answer" },
  READ_TOO_SLOW: { status: 503, title: "Reading that takes too long" },
  SHUTTING_DOWN: { status: 503, title: "This process is shutting down" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Thrown by any layer to answer with a problem; everything else that is thrown is a bug or an outage. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly faults: Fault[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** From where it can be asked again. */
  readonly next: string | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { faults?: Fault[]; retryAfterSeconds?: number; next?: string; cause?: unknown } = {},
  ) {
    super(detail, { cause: more.cause });
    this.name = "Problem";
    this.code = code;
    this.status = PROBLEMS[code].status;
    this.faults = more.faults;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.next = more.next;
  }
}

export function invalid(faults: Fault[]): Problem {
  const [first] = faults;
  const detail = first ? `${first.path || "the body"} ${first.message}` : "the request is not valid";
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
  return new Problem("VALIDATION_FAILED", `${detail}${more}`, { faults });
}
