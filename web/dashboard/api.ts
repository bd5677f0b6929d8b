// Asks the service's public API, by the session's cookie.

export type Page<Item> = { data: Item[]; nextCursor: string | null };
export type Fault = { path: string; message: string };

/** What the service answered instead. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly faults: Fault[];

  constructor(status: number, code: string, detail: string, faults: Fault[] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.faults = faults;
  }
}

type Options = { body?: unknown; key?: string; signal?: AbortSignal };

let onSignedOut = () => {};
/** Called when the session turns out to be over. */
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export async function ask<Answer>(method: string, path: string, options: Options = {}): Promise<Answer> {
  const { body, key, signal } = options;
  const answer = await fetch(path, {
    method,
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused(0, "UNREACHABLE", "The service does not answer.");
  });
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.includes("json") === true;
  const said = isJson && text !== "" ? JSON.parse(text) : text;
  if (answer.ok || (path === "/health" && answer.status === 503 && isJson)) return said as Answer;
  if (answer.status === 401 && key === undefined) onSignedOut();
  const { code = "FAILED", detail = `It answered ${answer.status}.`, errors = [] } = isJson ? said : {};
  throw new Refused(answer.status, code, detail, errors);
}

export const get = <Answer>(path: string, signal?: AbortSignal): Promise<Answer> =>
  ask("GET", path, signal ? { signal } : {});
export const post = <Answer>(path: string, body?: unknown): Promise<Answer> => ask("POST", path, { body });

/** A path with a query; what is empty is left out. */
export function withQuery(path: string, fields: { [name: string]: string | number | null | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  return query.size > 0 ? `${path}?${query}` : path;
}

export const named = (name: string): string => encodeURIComponent(name);
