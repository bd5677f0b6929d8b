// Reads what a request says by the schemas of its route; whatever they do not allow is told, all of it at once.

import type { TSchema } from "typebox";
import { type Fault, invalid, Problem } from "#domain/problems.ts";
import { compile, storableFaults } from "#domain/validate.ts";
import type { Method, Route } from "./route.ts";

type Query = { [name: string]: unknown };
type Given = { params: unknown; query: unknown; body: unknown };
type Parsed = { params: unknown; query: Query; body: unknown };

/** Throws the problem. */
export function parserOf(route: Route): (given: Given) => Parsed {
  const { method, queryPrefix } = route;
  const checkParams = checker(route.params);
  const checkQuery = checker(route.query);
  const checkBody = route.isBodyCheckedLater || route.isRaw ? undefined : checker(route.body);
  const integers = integersOf(route.query);
  return ({ params, query: text, body }) => {
    const query = withIntegers(text as Query, integers);
    const isLeftOut = route.isBodyOptional === true && body === undefined;
    if (checkParams) checkNames(method, bodyFaults(params, checkParams));
    const faults = [
      ...queryFaults(query, queryPrefix, checkQuery),
      ...(checkBody && !isLeftOut ? bodyFaults(body, checkBody) : []),
    ];
    if (faults.length > 0) throw invalid(faults);
    return { params, query, body: isLeftOut ? {} : body };
  };
}

const checker = (schema: TSchema | undefined) => schema && compile(schema);

function bodyFaults(body: unknown, check: (value: unknown) => Fault[]): Fault[] {
  const faults = storableFaults(body);
  return faults.length > 0 ? faults : check(body);
}

/** Only PUT gives names. To all others, a path with a name that cannot be one names nothing. */
function checkNames(method: Method, faults: Fault[]): void {
  if (faults.length === 0) return;
  if (method === "PUT") throw invalid(faults);
  const why = faults.map(({ path, message }) => `${path.slice(1)} ${message}`).join(", ");
  throw new Problem("NOT_FOUND", `there can be nothing of that name: ${why}`);
}

function queryFaults(
  query: Query,
  prefix: string | undefined,
  check: ((value: unknown) => Fault[]) | undefined,
): Fault[] {
  const faults = storableFaults(query);
  if (faults.length > 0) return faults;
  const isFree = (name: string) => prefix !== undefined && name.startsWith(prefix) && name !== prefix;
  for (const [name, value] of Object.entries(query)) {
    if (isFree(name) && typeof value !== "string") faults.push({ path: `/${name}`, message: "must be given once" });
  }
  const rest = prefix ? Object.fromEntries(Object.entries(query).filter(([name]) => !isFree(name))) : query;
  return [...faults, ...(check?.(rest) ?? [])];
}

/** Query strings carry text: what the schema calls a whole number is read as one. */
function withIntegers(query: Query, integers: readonly string[]): Query {
  if (integers.length === 0) return query;
  const read = { ...query };
  for (const name of integers) {
    const text = read[name];
    if (typeof text === "string" && /^-?\d{1,15}$/.test(text)) read[name] = Number(text);
  }
  return read;
}

const integersOf = (schema: TSchema | undefined): string[] =>
  Object.entries((schema as { properties?: { [name: string]: { type?: string } } } | undefined)?.properties ?? {})
    .filter(([, { type }]) => type === "integer")
    .map(([name]) => name);
