// Serves the routes: parses, authenticates, validates, answers, and turns whatever goes wrong into a
// problem. Every rule that holds for all routes stands here once.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Caller } from "#domain/actor.ts";
import { PROBLEMS, Problem } from "#domain/problems.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Metrics } from "#telemetry/metrics.ts";
import type { AskedInbox, Authenticate } from "./authenticate.ts";
import { type Bodies, createBodies, SMALL_BYTES } from "./bodies.ts";
import { cookieToken, corsHeaders, PREFLIGHT_HEADERS } from "./cross-origin.ts";
import { parserOf } from "./parse.ts";
import { pathsOf, refuse } from "./paths.ts";
import { bodyOf, PROBLEM_JSON, problemOf } from "./problem.ts";
import { type Answer, type Ask, METHODS, type Route } from "./route.ts";
import { sessionToken } from "./session-cookie.ts";
import type { RequestTurns, Turns } from "./turns.ts";

export type ServerOptions = {
  log: Logger;
  metrics: Metrics;
  auth: Authenticate;
  newRequestId: () => string;
  isStopping: () => boolean;
  /** Pages of these origins may read inboxes. */
  allowOrigins?: readonly string[];
  /** Where browsers find this service, if that is not where they say. */
  publicUrl?: string | undefined;
  /** Without them nobody waits for anybody. */
  turns?: RequestTurns;
};

const BODY_BYTES = 262_144;
/**
 * Names stand in paths. The longest that may be stored, a device's token of 4096 characters of which each takes twelve when
 * encoded, must fit; how long each may be, its schema says.
 */
const HEAD_BYTES = 65_536;
/** Whoever comes without a key stands in a line of their own. */
const NOBODY = 0;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

// No page here needs anything from elsewhere, and none may be framed.
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
};

export function createServer(serving: ServerOptions, routes: Route[]): FastifyInstance {
  const { log, newRequestId, isStopping, allowOrigins = [] } = serving;
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES,
    http: { maxHeaderSize: HEAD_BYTES },
    routerOptions: { maxParamLength: HEAD_BYTES },
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    return503OnClosing: false,
    genReqId: (request) => requestIdOf(request) ?? newRequestId(),
    frameworkErrors: (error, request, reply) => answerProblem(error, request, reply),
    clientErrorHandler: (_error, socket) => {
      const body = JSON.stringify(bodyOf(new Problem("BAD_REQUEST", "the request could not be read")));
      const head = `HTTP/1.1 400 Bad Request\r\ncontent-type: ${PROBLEM_JSON}\r\nconnection: close\r\n`;
      if (socket.writable) socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    },
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, text, done) => {
    try {
      done(null, text === "" ? undefined : JSON.parse(text as string));
    } catch (error) {
      done(new Problem("MALFORMED_JSON", error instanceof Error ? error.message : "not JSON", { cause: error }));
    }
  });

  const paths = pathsOf(routes);
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(HEADERS);
    reply.header("x-request-id", request.id);
    const cors = corsHeaders(request.url, request.headers, allowOrigins);
    if (cors) reply.headers(cors);
    if (cors && request.method === "OPTIONS") return reply.code(204).headers(PREFLIGHT_HEADERS).send();
    // Here and not in a handler: what Fastify thinks of the body of a strange method comes first otherwise.
    if (request.is404) refuse(request, reply, paths);
  });
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (isStopping()) reply.header("connection", "close");
    done();
  });
  app.addHook("onResponse", async (request, reply) => account(request, reply, serving));
  app.setErrorHandler((error, request, reply) => answerProblem(error, request, reply));

  const bodies = createBodies();
  for (const route of routes) if (!route.isRaw) serve(app, route, serving, bodies);
  // A fixed path is nobody's name: GET /v1/notifications/batch does not ask for the id `batch`.
  for (const { path, methods } of paths) {
    const others = METHODS.filter((method) => !methods.includes(method));
    const onRequest = async (request: FastifyRequest, reply: FastifyReply) => refuse(request, reply, paths);
    if (!path.includes(":")) app.route({ method: others, url: path, onRequest, handler: () => {} });
  }
  // A signature is over bytes: what is signed must not be parsed and written again.
  app.register(async (raw) => {
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    for (const route of routes) if (route.isRaw) serve(raw, route, serving, bodies);
  });

  function answerProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = problemOf(error);
    if (isFailure(problem.status)) log.error({ requestId: request.id, err: problem.cause ?? error }, problem.code);
    if (problem.retryAfterSeconds !== undefined) reply.header("retry-after", String(problem.retryAfterSeconds));
    if (problem.code === "UNAUTHENTICATED") reply.header("www-authenticate", 'Bearer realm="carillon"');
    reply
      .code(problem.status)
      .headers({ ...HEADERS, ...corsHeaders(request.url, request.headers, allowOrigins) })
      .headers({ "x-request-id": request.id, "content-type": PROBLEM_JSON })
      .send(JSON.stringify(bodyOf(problem, request.id)));
  }
  return app;
}

/** What a deployment is not set up for did not fail. */
const isFailure = (status: number): boolean => status >= 500 && status !== PROBLEMS.NOT_CONFIGURED.status;

function account(request: FastifyRequest, reply: FastifyReply, { log, metrics }: ServerOptions): void {
  const { id: requestId, method } = request;
  const route = request.routeOptions.url ?? "none";
  const status = reply.statusCode;
  const seconds = reply.elapsedTime / 1000;
  metrics.httpDuration.observe({ method, route, status }, seconds);
  const fields = { requestId, method, route, status, ms: Math.round(seconds * 1000) };
  if (isFailure(status)) log.warn(fields, "request failed");
  else log.debug(fields, "request");
}

function serve(app: FastifyInstance, route: Route, serving: ServerOptions, bodies: Bodies): void {
  const { auth, allowOrigins = [], publicUrl, turns } = serving;
  const { method, path, scope, bodyLimit } = route;
  const parse = parserOf(route);
  const actors = new WeakMap<FastifyRequest, Caller>();
  const inTurn = turnOf(route, turns);

  app.route({
    method,
    url: path,
    ...(bodyLimit && { bodyLimit }),
    // What streams has no length to tell.
    exposeHeadRoute: route.answers[200]?.mediaType !== "text/event-stream" && !route.answers[200]?.streams,
    // Before the body is read: a stranger's body is not worth parsing.
    onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
      if (scope) {
        const { headers, ip } = request;
        const inbox = route.isForSubscribers ? inboxOf(request, allowOrigins) : undefined;
        // Whose page an inbox's cookie came from is for that cookie to say.
        const hasToken = headers.authorization !== undefined || inbox?.token !== undefined;
        const session = hasToken ? undefined : sessionToken(method, headers, publicUrl);
        const caller = await auth.authenticate({
          header: headers.authorization,
          address: ip,
          needed: scope,
          inbox,
          session,
        });
        actors.set(request, { ...caller, from: { address: ip, requestId: request.id } });
      }
      const bytes = bodyBytes(request, bodyLimit ?? BODY_BYTES);
      if (bytes > SMALL_BYTES) {
        reply.raw.once("close", bodies.take(actors.get(request)?.tenant ?? NOBODY, bytes));
      }
    },
    async handler(request, reply) {
      const ask = {
        ...parse(request),
        header: (name: string) => headerOf(request, name),
        url: request.url,
        actor: actors.get(request),
        get gone() {
          return goneOf(reply);
        },
      } as Ask<never, never, never>;
      const answer = await (inTurn ? inTurn(ask.actor?.tenant ?? NOBODY, () => route.handle(ask)) : route.handle(ask));
      return send(reply, answer);
    },
  });
}

function turnOf({ turn, scope }: Route, turns: ServerOptions["turns"]): Turns | undefined {
  const kind = turn ?? (scope ? "small" : "none");
  return kind === "none" ? undefined : turns?.[kind];
}

function send(reply: FastifyReply, { status, body, headers, stream }: Answer): FastifyReply {
  reply.code(status);
  if (headers) reply.headers(headers);
  if (stream) {
    reply.hijack();
    reply.raw.writeHead(status, reply.getHeaders() as OutgoingHttpHeaders);
    stream(reply.raw);
    return reply;
  }
  if (body === undefined) return reply.send();
  if (!headers?.["content-type"]) reply.header("content-type", "application/json; charset=utf-8");
  const isReady = typeof body === "string" || Buffer.isBuffer(body);
  return reply.send(isReady ? body : JSON.stringify(body));
}

function goneOf({ raw }: FastifyReply): AbortSignal {
  const ending = new AbortController();
  raw.once("close", () => ending.abort());
  if (raw.destroyed) ending.abort();
  return ending.signal;
}

/** What the body may come to at most. */
function bodyBytes({ headers }: FastifyRequest, most: number): number {
  if (headers["transfer-encoding"] !== undefined) return most;
  return Math.min(Number(headers["content-length"] ?? 0), most);
}

/** A token in the header leaves the cookie alone. */
function inboxOf({ params, headers }: FastifyRequest, allowOrigins: readonly string[]): AskedInbox {
  const { userId = "" } = params as { userId?: string };
  return { userId, token: headers.authorization === undefined ? cookieToken(headers, allowOrigins) : undefined };
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** A caller's own id is kept when it cannot do harm in a log. */
function requestIdOf(request: { headers: IncomingHttpHeaders }): string | undefined {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : undefined;
}
