// Finds every fault of a value against a schema.
//
// Ajv decides quickly whether a value fits; this walk runs only when it does not, and says what
// is wrong in words a person can act on. It knows the part of JSON Schema that our schemas use.
// The function carillon.faults_of() in the database is the same walk in SQL, for notifications
// sent from there; a property test holds the two and Ajv to the same answers.

import type { Fault } from "./problems.ts";

export type Schema = {
  type?: "string" | "integer" | "number" | "boolean" | "object" | "array";
  enum?: readonly unknown[];
  const?: unknown;
  pattern?: string;
  /** Only date-time means something here: a pattern cannot tell that there is no 30 February. */
  format?: string;
  /** Completes "must be …" when the pattern does not match. */
  "x-expects"?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[] | undefined;
  additionalProperties?: boolean | Schema;
  minProperties?: number;
  maxProperties?: number;
  /** Exactly one of these fields. */
  oneOf?: readonly { required: readonly string[] }[];
  /** Only "this or null" is known. */
  anyOf?: readonly (Schema | { type: "null" })[];
};

const ARTICLES = { string: "a string", integer: "a whole number", number: "a number", boolean: "true or false" };
const NAMES = { ...ARTICLES, object: "an object", array: "a list" } as const;

export function faultsOf(schema: Schema, value: unknown, path = ""): Fault[] {
  const faults: Fault[] = [];
  walk(schema, value, path, faults);
  return faults;
}

function walk(schema: Schema, value: unknown, path: string, faults: Fault[]): void {
  if (schema.anyOf) {
    const other = schema.anyOf.find((one): one is Schema => one.type !== "null");
    if (value !== null && other) walk(other, value, path, faults);
    return;
  }
  const fault = (message: string) => faults.push({ path, message });
  const expected = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (expected) {
    if (!expected.includes(value)) fault(`must be ${expected.length > 1 ? "one of " : ""}${expected.join(", ")}`);
    return;
  }
  if (schema.type && !isOfType(schema.type, value)) {
    fault(`must be ${NAMES[schema.type]}`);
    return;
  }
  if (typeof value === "string") walkString(schema, value, fault);
  else if (typeof value === "number") walkNumber(schema, value, fault);
  else if (Array.isArray(value)) walkList(schema, value, path, faults);
  else if (value !== null && typeof value === "object") walkObject(schema, value, path, faults);
}

function walkString(schema: Schema, value: string, fault: (message: string) => void): void {
  // JSON Schema and PostgreSQL count code points, JavaScript's length counts UTF-16 units.
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (value.length < minLength) fault(`must have at least ${minLength} character${minLength === 1 ? "" : "s"}`);
  else if (value.length > maxLength && [...value].length > maxLength)
    fault(`must have at most ${maxLength} characters`);
  else if (schema.pattern && !new RegExp(schema.pattern, "u").test(value))
    fault(`must be ${schema["x-expects"] ?? `like ${schema.pattern}`}`);
  else if (schema.format === "date-time" && !isRealDay(value)) fault("must be a day that exists");
}

/** JavaScript reads 30 February as 2 March; PostgreSQL refuses it, and so do we. */
export function isRealDay(instant: string): boolean {
  const [year = 0, month = 0, day = 0] = instant.slice(0, 10).split("-").map(Number);
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

function walkNumber(schema: Schema, value: number, fault: (message: string) => void): void {
  if (schema.minimum !== undefined && value < schema.minimum) fault(`must be at least ${schema.minimum}`);
  if (schema.maximum !== undefined && value > schema.maximum) fault(`must be at most ${schema.maximum}`);
}

function walkList(schema: Schema, value: unknown[], path: string, faults: Fault[]): void {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items } = schema;
  if (value.length < minItems) faults.push({ path, message: `must have at least ${minItems} of them` });
  if (value.length > maxItems) {
    faults.push({ path, message: `must have at most ${maxItems} of them` });
    return;
  }
  if (items) for (const [index, item] of value.entries()) walk(items, item, `${path}/${index}`, faults);
}

function walkObject(schema: Schema, value: object, path: string, faults: Fault[]): void {
  const { properties = {}, required = [], additionalProperties = true, minProperties = 0, maxProperties } = schema;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  for (const name of required) {
    if (!entries.some(([key]) => key === name)) faults.push({ path: pointer(path, name), message: "is required" });
  }
  const given = schema.oneOf?.filter((one) => one.required.every((name) => entries.some(([key]) => key === name)));
  if (given && given.length !== 1) {
    const names = schema.oneOf?.flatMap((one) => one.required) ?? [];
    faults.push({ path, message: `must have either ${names.join(" or ")}` });
  }
  if (entries.length < minProperties) faults.push({ path, message: "must have at least one field" });
  if (maxProperties !== undefined && entries.length > maxProperties) {
    faults.push({ path, message: `must have at most ${maxProperties} fields` });
    return;
  }
  for (const [name, item] of entries) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property) walk(property, item, pointer(path, name), faults);
    else if (additionalProperties === false)
      faults.push({ path: pointer(path, name), message: "is not a known field" });
    else if (additionalProperties !== true) walk(additionalProperties, item, pointer(path, name), faults);
  }
}

function isOfType(type: NonNullable<Schema["type"]>, value: unknown): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return value !== null && typeof value === "object" && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

/** One step of a JSON Pointer (RFC 6901). */
export const pointer = (path: string, name: string): string =>
  `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
