// Speaks to a ClickHouse by HTTP, of any version from 18.16 on. Its own client would do no more for us than this.
//
// Whether a statement came to its end is told in three places: the status, a header, and, where the error came after the first byte of the
// answer, its text. Statements that answer nothing must answer with nothing.

import { oneLine } from "#domain/said.ts";
import { createHttp } from "#wire/http.ts";

export type ClickHouseAccess = { url: string; user?: string; password?: string };

/** What the server says is wrong. `code` is one of its own list, 0 where it says none. */
export class ClickHouseError extends Error {
  readonly code: number;

  constructor(code: number, said: string) {
    super(`ClickHouse: ${said}`);
    this.name = "ClickHouseError";
    this.code = code;
  }
}

export type Asked = {
  sql: string;
  /** Rows of an insert. */
  rows?: string;
  /** Settings of the server for this statement. */
  settings?: { readonly [name: string]: string };
  signal: AbortSignal;
};

export type ClickHouse = {
  /** A statement that answers nothing. */
  run(asked: Asked): Promise<void>;
  /** Rows of a question, each of texts. */
  list(asked: Asked): Promise<string[][]>;
  close(): Promise<void>;
};

/** Less than the 3 s after which old servers close an idle connection. */
const KEEP_ALIVE_MS = 2_000;

export function createClickHouse(access: ClickHouseAccess): ClickHouse {
  const http = createHttp({ keepAliveMs: KEEP_ALIVE_MS });
  const { url, headers } = doorOf(access);

  async function ask({ sql, rows, settings, signal }: Asked): Promise<string> {
    const target = new URL(url);
    // The answer begins when the statement has ended, so that its status is true.
    target.searchParams.set("wait_end_of_query", "1");
    for (const [name, value] of Object.entries(settings ?? {})) target.searchParams.set(name, value);
    if (rows !== undefined) target.searchParams.set("query", sql);
    const request = { url: target.href, headers, body: rows ?? sql, signal };
    // Again, once: the server may have closed a connection that was idle. Whatever is asked of it may be done twice.
    let answer = await http.ask(request);
    if ("kind" in answer && !signal.aborted) answer = await http.ask(request);
    signal.throwIfAborted();
    if ("kind" in answer) throw new Error(`ClickHouse: ${answer.reason}`);
    const code = answer.header("x-clickhouse-exception-code");
    if (answer.status !== 200 || code !== undefined) throw errorOf(answer.text, code, answer.status);
    return answer.text;
  }

  return {
    async run(asked) {
      const text = await ask(asked);
      if (text.trim() !== "") throw errorOf(text);
    },
    async list(asked) {
      const text = await ask({ ...asked, sql: `${asked.sql} format JSONCompact` });
      const found = parsed(text);
      if (found === undefined) throw errorOf(text);
      return found.data.map((row) => row.map(String));
    },
    close: () => http.close(),
  };
}

/** Names and passwords go in headers: a URL is shown in errors and written into logs. */
function doorOf({ url, user, password }: ClickHouseAccess): { url: URL; headers: { [name: string]: string } } {
  const door = new URL(url);
  const name = user ?? decodeURIComponent(door.username);
  const secret = password ?? decodeURIComponent(door.password);
  door.username = "";
  door.password = "";
  const headers = { ...(name && { "x-clickhouse-user": name }), ...(secret && { "x-clickhouse-key": secret }) };
  return { url: door, headers };
}

function parsed(text: string): { data: unknown[][] } | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Behind these words a server repeats rows, which are nobody's business who reads an error. */
const ROWS =
  /(:? ?\(at row|,? before: |: While executing|\. Column values:|,? e\.what\(\)|\. Stack trace:| \(version ).*/;

function errorOf(text: string, header?: string, status = 200): ClickHouseError {
  const [, said = `it answered ${status}`] = /DB::Exception: (.*)/.exec(text) ?? [];
  const code = Number(header ?? /Code: (\d+)/.exec(text)?.[1] ?? 0);
  const words = oneLine(said.replace(ROWS, ""));
  return new ClickHouseError(code, code === 0 ? words : `${words} (code ${code})`);
}
