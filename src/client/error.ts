// What the client throws: the server's own words when it says no, and that nobody answered.

import type { Problem, ProblemCode } from "./generated.ts";

/** Whatever an answer said; a proxy in between may say less than Carillon does. */
export type ProblemBody = Problem;

export type Asked = { method: string; url: string };

/** The server's own words for why it did not do it. */
export class CarillonError extends Error {
  override name = "CarillonError";
  /** The HTTP status. */
  readonly status: number;
  /** Which problem; this never changes. `UNKNOWN` where the answer was not Carillon's. */
  readonly code: ProblemCode | "UNKNOWN";
  /** Every fault of an invalid request. */
  readonly errors: { path: string; message: string }[];
  /** Of a reset: where to go on. */
  readonly next: string | undefined;
  /** The message without what was asked for. */
  readonly said: string;
  readonly method: string | undefined;
  readonly url: string | undefined;
  /** The whole answer. */
  readonly problem: Partial<ProblemBody>;

  constructor(status: number, problem: Partial<ProblemBody>, asked?: Asked) {
    const { code = "UNKNOWN", title = "", detail = "", errors = [], next } = problem;
    const said = `${code}: ${detail || title || `HTTP ${status}`}${next === undefined ? "" : ` (next: ${next})`}`;
    super(asked ? `${said} [${asked.method} ${asked.url}]` : said);
    this.said = said;
    this.status = status;
    this.code = code as ProblemCode;
    this.errors = errors;
    this.next = next;
    this.method = asked?.method;
    this.url = asked?.url;
    this.problem = problem;
  }
}

/** Nobody answered, or not in time. Whether it was done is not known. `cause` is what fetch threw. */
export class UnreachableError extends TypeError {
  override name = "UnreachableError";
  readonly method: string;
  readonly url: string;

  constructor({ method, url }: Asked, cause: unknown) {
    super(`${cause instanceof Error ? cause.message : String(cause)} [${method} ${url}]`, { cause });
    this.method = method;
    this.url = url;
  }
}

export async function errorOf(answer: Response, asked: Asked): Promise<CarillonError> {
  const body = (await answer.json().catch(() => ({}))) as Partial<ProblemBody>;
  return new CarillonError(answer.status, body, asked);
}
