// A route is data: what it takes, who may call it, what it answers. The server validates by it and
// the OpenAPI document is drawn from it, so neither can drift from the other.

import type { ServerResponse } from "node:http";
import type { Static, TSchema } from "typebox";
import type { Caller, KeyActor } from "#domain/actor.ts";
import type { Needed } from "#domain/api-key.ts";

export type Answer = {
  status: number;
  body?: unknown;
  headers?: { [name: string]: string };
  /** Takes over once the head is written, and ends the answer itself, one day. */
  stream?: (out: ServerResponse) => void;
};

export type Ask<Params, Query, Body, Who = Caller> = {
  params: Params;
  query: Query;
  body: Body;
  header: (name: string) => string | undefined;
  /** Path and query as they were asked for. */
  url: string;
  /** Who asks. Routes without a scope are open to everybody and must not look. */
  actor: Who;
  /** Aborts when whoever asked hangs up. Made when first looked at. */
  readonly gone: AbortSignal;
};

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

export type Route = {
  method: Method;
  path: string;
  summary: string;
  detail?: string;
  tag: string;
  scope?: Needed;
  /** A subscriber's token for the user in the path will do instead of a key. */
  isForSubscribers?: boolean;
  /** Whether it waits for its tenant's turn, and for which; without a word small with a scope, and none without. */
  turn?: "small" | "large" | "none";
  params?: TSchema;
  query?: TSchema;
  /** Name prefixes of query parameters that are taken besides those of `query`. */
  queryPrefix?: string;
  headers?: TSchema;
  body?: TSchema;
  /** Without a body it is as with an empty object. */
  isBodyOptional?: boolean;
  /** The step behind the route validates the body itself; the schema is for the document. */
  isBodyCheckedLater?: boolean;
  /** The body is handed over as the bytes that came, whatever their type. */
  isRaw?: boolean;
  bodyLimit?: number;
  /** `streams`: whoever accepts text/event-stream gets that instead. */
  answers: { [status: number]: { description: string; schema?: TSchema; mediaType?: string; streams?: true } };
  handle: (ask: Ask<never, never, never>) => Promise<Answer> | Answer;
};

type Value<S, Otherwise> = S extends TSchema ? Static<S> : Otherwise;

/** Gives the handler the types of the schemas beside it; a subscriber comes only where one may. */
export function route<P = undefined, Q = undefined, B = undefined, S = false>(
  definition: Omit<Route, "handle" | "params" | "query" | "body" | "isForSubscribers"> & {
    params?: P;
    query?: Q;
    body?: B;
    isForSubscribers?: S;
    handle: (
      ask: Ask<Value<P, unknown>, Value<Q, unknown>, Value<B, unknown>, S extends true ? Caller : KeyActor>,
    ) => Promise<Answer> | Answer;
  },
): Route {
  return definition as Route;
}
