// Makes the client's methods of the table (methods.ts): each puts what it was given into path, query and body, and calls.

import type { CallOptions } from "./call.ts";
import { METHODS, type Signature, signatureOf } from "./methods.ts";

export type RawBody = { body: string | Uint8Array<ArrayBuffer>; headers?: { [name: string]: string } };
export type Request = { operation: string; method: string; path: string; body?: unknown; raw?: RawBody };
export type Call = (request: Request, options?: CallOptions) => Promise<unknown>;

type Entry = Signature & { operation: string };
type Method = (...given: unknown[]) => Promise<unknown>;
type Methods = { [name: string]: Method | Methods };

/** All of them, under the names that they have in the table. */
export function bind(call: Call): Methods {
  const entries = Object.entries(METHODS).map(([operation, written]) => ({ operation, ...signatureOf(written) }));
  const client: Methods = {};
  for (const { names } of entries) {
    const same = entries.filter((entry) => entry.names.join(".") === names.join("."));
    const method: Method = (...given) => {
      const entry = same.find(({ args }) => args.every((arg, n) => !isWord(arg) || arg === `"${given[n]}"`));
      if (!entry) throw new TypeError(`there is no ${names.join(".")} of ${String(given[0])}`);
      return call(requestOf(entry, given), given[entry.args.length] as CallOptions | undefined);
    };
    put(client, names, method);
  }
  return client;
}

/** `dev.messages.list` is in `messages` of `dev`. */
function put(client: Methods, [first = "", ...rest]: string[], method: Method): void {
  if (rest.length === 0) {
    client[first] = method;
    return;
  }
  client[first] ??= {};
  put(client[first] as Methods, rest, method);
}

const isWord = (arg: string): boolean => arg.startsWith('"');

/** What is asked for when the method is called with these. */
export function requestOf({ operation, args }: Omit<Entry, "names">, given: readonly unknown[]): Request {
  const [method = "", template = ""] = operation.split(" ");
  const parts: { [name: string]: string } = {};
  const query: { [name: string]: unknown } = {};
  let body: unknown;
  let raw: RawBody | undefined;
  for (const [n, arg] of args.entries()) {
    const value = given[n];
    const [place = "", field] = arg.split(".");
    if (value === undefined || isWord(arg)) continue;
    if (place === "raw") raw = value as RawBody;
    else if (place === "body") body = field === undefined ? value : { ...(body as object | undefined), [field]: value };
    else if (place === "query") Object.assign(query, field === undefined ? value : { [field]: value });
    else parts[arg] = encodeURIComponent(String(value));
  }
  const path = template.replace(/:(\w+)/g, (_, name: string) => parts[name] ?? "") + queryOf(query);
  return { operation, method, path, ...(body !== undefined && { body }), ...(raw && { raw }) };
}

/** Lists with commas; the fields of an object with a point: `metadata.orderId`. */
export function queryOf(values: { [name: string]: unknown }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    if (value === null || typeof value !== "object" || Array.isArray(value)) query.set(name, String(value));
    else for (const [key, inner] of Object.entries(value)) query.set(`${name}.${key}`, String(inner));
  }
  return query.size > 0 ? `?${query}` : "";
}
