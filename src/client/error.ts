// What the client throws when the server says no.

export type ProblemBody = {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  errors?: { path: string; message: string }[];
  /** Of a reset: the oldest position that is kept. */
  next?: string;
};

/** The server's own words for why it did not do it. */
export class CarillonError extends Error {
  override name = "CarillonError";
  readonly status: number;
  readonly code: string;
  readonly errors: { path: string; message: string }[];
  readonly next: string | undefined;
  constructor(status: number, { code = "UNKNOWN", title = "", detail = "", errors = [], next }: Partial<ProblemBody>) {
    super(`${code}: ${detail || title || `HTTP ${status}`}${next === undefined ? "" : ` (next: ${next})`}`);
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.next = next;
  }
}

export async function errorOf(answer: Response): Promise<CarillonError> {
  const body = (await answer.json().catch(() => ({}))) as Partial<ProblemBody>;
  return new CarillonError(answer.status, body);
}
