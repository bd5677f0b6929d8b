// POST /mcp: a few tools for agents, by the Model Context Protocol over streamable HTTP. Off unless it is asked for (CARILLON_MCP).
//
// Stateless: each POST is one JSON-RPC message, answered with one JSON object. Both eras of the protocol are served: 2026-07-28, where every
// request says its version, and the revisions before, which begin with `initialize`; neither is given a session.

import { Type } from "typebox";
import type { KeyActor } from "#domain/actor.ts";
import { allows } from "#domain/api-key.ts";
import { Problem } from "#domain/problems.ts";
import { compile } from "#domain/validate.ts";
import { problemOf } from "#http/core/problem.ts";
import { type Answer, type Route, route } from "#http/core/route.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import type { Queryable } from "#store/connection/database.ts";
import { cancel, liftSuppression, requeue, retry, send, setPause } from "./changing.ts";
import { confirmationOf, GOOD_FOR_MS, readConfirmation } from "./confirm.ts";
import { createInside, type Inside } from "./inside.ts";
import { WARNING } from "./quoted.ts";
import { deadLetters, findNotifications, overview } from "./reading.ts";
import type { Arguments, Told, Tool } from "./tool.ts";
import { why } from "./why.ts";

export const TOOLS: readonly Tool[] = [
  ...[why, findNotifications, overview, deadLetters],
  ...[send, retry, cancel, liftSuppression, requeue, setPause],
];
const MODERN = "2026-07-28";
const EARLIER = ["2025-11-25", "2025-06-18", "2025-03-26"];
const VERSION_FIELD = "io.modelcontextprotocol/protocolVersion";
const INSTRUCTIONS =
  "Carillon sends notifications. For why somebody did not get one, call why_not_delivered. A tool that changes something does a dry run first and " +
  `answers with a word in \`confirm\`: show a person what it would do, then call it again with the same arguments and that word. ${WARNING}`;
const CHECKS = new Map(TOOLS.map(({ name, input }) => [name, compile(input)]));

type Message = { jsonrpc?: unknown; id?: string | number; method?: unknown; params?: { [name: string]: unknown } };
type Failure = { code: number; message: string; data?: unknown };
export type McpOptions = {
  routes: readonly Route[];
  turns: RequestTurns;
  db: Queryable;
  version: string;
  nowMs: () => number;
  onError: (error: unknown) => void;
};
type Caller = { actor: KeyActor; secret: string; inside: Inside };

export function mcpRoutes(options: McpOptions): Route[] {
  const insideFor = createInside(options.routes, options.turns);
  return [
    route({
      method: "POST",
      path: "/mcp",
      summary: "Tools for agents, by the Model Context Protocol",
      tag: "Documents",
      scope: "any",
      // What a tool reads waits for its turn itself.
      turn: "none",
      body: Type.Object({}, { additionalProperties: true }),
      answers: { 200: { description: "A JSON-RPC answer" }, 202: { description: "Heard: it needs no answer" } },
      async handle({ body, header, actor, gone }) {
        const secret = header("authorization");
        // A browser sends a cookie along by itself, and agents have none.
        if (secret === undefined) throw new Problem("UNAUTHENTICATED", "send the header Authorization: Bearer <key>");
        return answerTo(body as Message, header, { actor, secret, inside: insideFor(actor, gone) }, options);
      },
    }),
  ];
}

async function answerTo(
  message: Message,
  header: (name: string) => string | undefined,
  caller: Caller,
  options: McpOptions,
): Promise<Answer> {
  const { jsonrpc, id, method, params = {} } = message;
  if (jsonrpc !== "2.0" || typeof method !== "string")
    return failed(400, null, { code: -32_600, message: "not JSON-RPC 2.0" });
  if (id === undefined) return { status: 202 };
  const asked = versionOf(params, header);
  const wrong = mismatchOf(method, params, header, asked);
  if (wrong) return failed(400, id, wrong);
  const result = await resultOf(method, params, caller, options);
  if ("code" in result) return failed(200, id, result as Failure);
  const complete = asked === MODERN || method === "server/discover" ? { resultType: "complete", ...result } : result;
  return { status: 200, body: { jsonrpc: "2.0", id, result: complete } };
}

const failed = (status: number, id: string | number | null, error: Failure): Answer => ({
  status,
  body: { jsonrpc: "2.0", id, error },
});

function versionOf(
  params: { [name: string]: unknown },
  header: (name: string) => string | undefined,
): string | undefined {
  const { [VERSION_FIELD]: told } = (params._meta ?? {}) as { [name: string]: unknown };
  return typeof told === "string" ? told : header("mcp-protocol-version");
}

/** Headers that gateways read must say what the body says. */
function mismatchOf(
  method: string,
  params: { [name: string]: unknown },
  header: (name: string) => string | undefined,
  asked: string | undefined,
): Failure | undefined {
  if (method === "initialize") return undefined;
  const supported = [MODERN, ...EARLIER];
  if (asked !== undefined && !supported.includes(asked)) {
    return { code: -32_022, message: `the version ${asked} is not supported`, data: { supported, requested: asked } };
  }
  if (asked !== MODERN) return undefined;
  const told: [string, unknown][] = [
    ["mcp-protocol-version", asked],
    ["mcp-method", method],
    ["mcp-name", method === "tools/call" ? params.name : undefined],
  ];
  const other = told.find(
    ([name, value]) => header(name) !== undefined && value !== undefined && header(name) !== value,
  );
  return other && { code: -32_020, message: `the header ${other[0]} says something else than the body` };
}

async function resultOf(
  method: string,
  params: { [name: string]: unknown },
  caller: Caller,
  options: McpOptions,
): Promise<{ [field: string]: unknown } | Failure> {
  const about = {
    capabilities: { tools: {} },
    serverInfo: { name: "carillon", title: "Carillon", version: options.version },
    instructions: INSTRUCTIONS,
  };
  switch (method) {
    case "server/discover":
      return { supportedVersions: [MODERN], ...about, ttlMs: 300_000, cacheScope: "private" };
    case "initialize":
      return { protocolVersion: EARLIER.find((one) => one === params.protocolVersion) ?? EARLIER[0], ...about };
    case "ping":
      return {};
    case "tools/list":
      return { tools: toolsFor(caller.actor).map(shown), ttlMs: 300_000, cacheScope: "private" };
    case "tools/call":
      return call(params, caller, options);
    default:
      return { code: -32_601, message: `there is no method ${method}` };
  }
}

const toolsFor = ({ scopes }: KeyActor): Tool[] => TOOLS.filter(({ scope }) => allows(scopes, scope));

function shown({ name, title, description, input, change }: Tool) {
  const { properties, ...schema } = JSON.parse(JSON.stringify(input));
  const confirm = {
    type: "string",
    description:
      "The word from the dry run. Without it nothing is changed: the answer says what would be, and has the word.",
  };
  return {
    name,
    title,
    description: change ? `${description} Without \`confirm\` it is a dry run.` : description,
    inputSchema: { type: "object", ...schema, properties: change ? { ...properties, confirm } : properties },
    annotations: { readOnlyHint: !change, destructiveHint: change !== undefined, openWorldHint: false },
  };
}

async function call(params: { [name: string]: unknown }, caller: Caller, options: McpOptions) {
  const tool = toolsFor(caller.actor).find(({ name }) => name === params.name);
  if (!tool) return { code: -32_602, message: `there is no tool ${String(params.name)} for this key` };
  const { confirm, ...given } = (params.arguments ?? {}) as Arguments;
  const faults = CHECKS.get(tool.name)?.(given) ?? [];
  if (faults.length > 0) {
    const text = faults.map(({ path, message }) => `${path || "arguments"} ${message}`).join("\n");
    return { content: [{ type: "text", text }], isError: true };
  }
  try {
    const told = await carryOut(tool, given, confirm, caller, options);
    const text = told.text.includes("⟦") ? `${told.text}\n\n${WARNING}` : told.text;
    return { content: [{ type: "text", text }], structuredContent: told.data };
  } catch (error) {
    const problem = problemOf(error);
    if (problem.status >= 500) options.onError(error);
    return { content: [{ type: "text", text: `${problem.code}: ${problem.message}` }], isError: true };
  }
}

async function carryOut(
  tool: Tool,
  given: Arguments,
  confirm: unknown,
  { actor, secret, inside }: Caller,
  { db, nowMs }: McpOptions,
): Promise<Told> {
  const world = { inside, actor, db };
  if (!tool.change) return tool.look(given, world);
  const signing = { secret, nowMs: nowMs() };
  if (confirm === undefined) {
    const told = await tool.look(given, world);
    const word = confirmationOf({ tool: tool.name, given, seen: told.data }, signing);
    const minutes = GOOD_FOR_MS / 60_000;
    const text = `DRY RUN, nothing was changed. ${told.text}\nTo do it, call ${tool.name} again with the same arguments and confirm: "${word}" within ${minutes} minutes.`;
    return { text, data: { dryRun: true, ...told.data, confirm: word } };
  }
  const meant = readConfirmation(String(confirm), { tool: tool.name, given }, signing);
  if (!meant) {
    throw new Problem(
      "VALIDATION_FAILED",
      "confirm is not the word for this: it is for other arguments or too old. Do a dry run.",
    );
  }
  const told = await tool.change(given, world, meant);
  return { text: told.text, data: { dryRun: false, ...told.data } };
}
