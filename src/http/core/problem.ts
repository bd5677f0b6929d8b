// Errors on the wire: RFC 9457, one shape for all of them.

import { PROBLEMS, Problem } from "#domain/problems.ts";
import { isOutage, isTooSlow } from "#store/connection/database.ts";

export const PROBLEM_JSON = "application/problem+json; charset=utf-8";

export type ProblemBody = {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  errors?: { path: string; message: string }[];
  next?: string;
  requestId?: string;
};

export const bodyOf = (problem: Problem, requestId?: string): ProblemBody => ({
  type: `/docs#${problem.code}`,
  title: PROBLEMS[problem.code].title,
  status: problem.status,
  code: problem.code,
  detail: problem.message,
  ...(problem.faults && { errors: problem.faults }),
  ...(problem.next !== undefined && { next: problem.next }),
  ...(requestId && { requestId }),
});

/** Translates whatever was thrown, once, at the edge. What is not known here is a bug: its words stay inside. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isOutage(error)) {
    return new Problem("DATABASE_UNAVAILABLE", "try again soon", { retryAfterSeconds: 1, cause: error });
  }
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Problem("PAYLOAD_TOO_LARGE", "see the limits in the documentation");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Problem("UNSUPPORTED_MEDIA_TYPE", "send the header Content-Type: application/json");
    default:
      return isCallersFault(error)
        ? new Problem("BAD_REQUEST", error.message)
        : new Problem("INTERNAL", "the request id helps to find it in the log", { cause: error });
  }
}

/** A step answers with what it did, or with the problem. */
export function orThrow<Value>(answer: Value | Problem): Value {
  if (answer instanceof Problem) throw answer;
  return answer;
}

/** Of a large read: the database is well, and less of it would be answered. */
export function tooSlow(error: unknown): never {
  if (!isTooSlow(error)) throw error;
  const detail = "the database had no more time for it: ask for less, or when less is going on";
  throw new Problem("READ_TOO_SLOW", detail, { retryAfterSeconds: 5, cause: error });
}

/** Fastify says so of bad URLs, over-long paths, wrong lengths and the like. */
const isCallersFault = (error: unknown): error is Error & { statusCode: number } =>
  error instanceof Error &&
  "statusCode" in error &&
  typeof error.statusCode === "number" &&
  error.statusCode >= 400 &&
  error.statusCode < 500;
