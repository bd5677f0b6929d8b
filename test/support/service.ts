// A whole Carillon in the test's process, on a database of its own.

import pg from "pg";
import { type Config, readConfig } from "#config/read.ts";
import { start } from "#main.ts";
import { createLog } from "#telemetry/log.ts";
import { migratedDatabase } from "./postgres.ts";

export type Answered = {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the service answered, and fails if it is not there
  body: any;
};
export type AskOptions = { key?: string | null; headers?: { [name: string]: string }; raw?: string | Buffer };

export type Service = {
  url: string;
  databaseUrl: string;
  key: string;
  db: pg.Pool;
  ask(method: string, path: string, body?: unknown, options?: AskOptions): Promise<Answered>;
  /** A key of another tenant, or with fewer scopes. */
  makeKey(key: { tenant?: string; scopes: string[] }): Promise<string>;
  stop(): Promise<void>;
};

export const ADMIN_KEY = "test-admin-key";
export const email = (n: number | string = 0) => ({
  channel: "email" as const,
  recipient: { email: "ada@example.com" },
  content: { subject: `Number ${n}`, textBody: "Hello" },
});

export async function startService(overrides: Partial<Config> = {}): Promise<Service> {
  const database = await migratedDatabase();
  const databaseUrl = overrides.databaseUrl ?? database.url;
  // The api alone, unless a test asks for more: what was accepted then stays where it is.
  const env = { CARILLON_API_KEY: ADMIN_KEY, PORT: "0", CARILLON_ROLES: "api" };
  const config = await readConfig({ env, cwd: import.meta.dirname });
  const running = await start({ ...config, databaseUrl, ...overrides }, createLog("silent"), () => {});
  const db = new pg.Pool({ connectionString: databaseUrl, max: 5 });
  db.on("error", () => {});
  const ask = asking(running.url);
  return {
    url: running.url,
    databaseUrl,
    key: ADMIN_KEY,
    db,
    ask,
    async makeKey(key) {
      const { status, body } = await ask("POST", "/v1/keys", { name: "a test's", ...key });
      if (status !== 201) throw new Error(`no key: ${JSON.stringify(body)}`);
      return body.key;
    },
    async stop() {
      await running.stop();
      await db.end();
      await database.drop();
    },
  };
}

/** The body of a GET. */
export const ask = async (service: Pick<Service, "ask">, path: string): Promise<Answered["body"]> =>
  (await service.ask("GET", path)).body;

/** Speaks plain HTTP, as any client would. */
export const asking =
  (url: string): Service["ask"] =>
  async (method, path, body, { key = ADMIN_KEY, headers = {}, raw } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(content !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(content !== undefined && { body: content }),
      redirect: "manual",
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.includes("json");
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
  };
