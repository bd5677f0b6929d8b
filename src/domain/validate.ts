// Decides whether a request may be accepted, and lists every fault when it may not.

import { Ajv2020 } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import { type Channel, INSTANT, NEEDS, NotificationRequest } from "./notification.ts";
import type { Fault } from "./problems.ts";
import { faultsOf, pointer, type Schema } from "./schema.ts";

// Formats and the words of a fault are not Ajv's business here: patterns decide, faultsOf() explains.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false });

export type Check = (value: unknown) => Fault[];

/** Compiles a schema into a check that is quick for values that fit and thorough for those that do not. */
export function compile(schema: TSchema): Check {
  const fits = ajv.compile(schema);
  return (value) => (fits(value) ? [] : faultsOf(schema as Schema, value));
}

const checkShape = compile(NotificationRequest);

/** Every fault of a request to send; none means it can be stored as it is. */
export function faultsOfRequest(value: unknown, now: Date): Fault[] {
  const faults = storableFaults(value);
  if (faults.length > 0) return faults;
  faults.push(...checkShape(value));
  if (isObject(value)) {
    faults.push(...unmetNeeds(value), ...impossibleInstants(value, now), ...otherRules(value));
  }
  return faults;
}

/**
 * Strings that PostgreSQL or a JSON reader elsewhere would refuse, numbers that JSON cannot carry,
 * and nesting deep enough to exhaust a parser's stack.
 */
export function storableFaults(value: unknown, path = "", depth = 0, faults: Fault[] = []): Fault[] {
  switch (typeof value) {
    case "string":
      if (!isStorable(value)) faults.push({ path, message: "must not contain NUL or half a surrogate pair" });
      break;
    case "number":
      if (!Number.isFinite(value)) faults.push({ path, message: "must be a finite number" });
      break;
    case "object":
      if (value === null) break;
      if (depth >= MAX_DEPTH) faults.push({ path, message: `must not be nested deeper than ${MAX_DEPTH} levels` });
      else if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) storableFaults(value[i], `${path}/${i}`, depth + 1, faults);
      } else {
        for (const name in value) {
          const here = `${path}/${name}`;
          if (name === "__proto__") faults.push({ path: here, message: "is not a known field" });
          else if (!isStorable(name))
            faults.push({ path, message: "must not have field names with NUL or half a surrogate pair" });
          else storableFaults((value as Record<string, unknown>)[name], here, depth + 1, faults);
        }
      }
      break;
    case "boolean":
    case "undefined":
      break;
    default:
      faults.push({ path, message: `must be JSON, not a ${typeof value}` });
  }
  return faults;
}

const MAX_DEPTH = 32;
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

function unmetNeeds(request: Fields): Fault[] {
  const needs = Object.hasOwn(NEEDS, String(request.channel)) ? NEEDS[request.channel as Channel] : undefined;
  if (!needs) return [];
  return (["recipient", "content"] as const).flatMap((part) => {
    const given = request[part] ?? {};
    // A part of the wrong type, or a content that is missing, has a fault already.
    if (!isObject(given) || (part === "content" && request.content === undefined)) return [];
    return needs[part]
      .filter((names) => names.every((name) => given[name] === undefined))
      .map((names) => ({
        path: pointer(`/${part}`, names[0] as string),
        message:
          names.length === 1
            ? `is required for ${request.channel}`
            : `is required for ${request.channel}, or instead ${names.slice(1).join(" or ")}`,
      }));
  });
}

function impossibleInstants(request: Fields, now: Date): Fault[] {
  const faults: Fault[] = [];
  const read = (name: "scheduledFor" | "expiresAt"): Date | undefined => {
    const given = request[name];
    if (typeof given !== "string" || !instant.test(given)) return undefined;
    if (!isRealDay(given)) faults.push({ path: `/${name}`, message: "must be a day that exists" });
    else return new Date(given);
  };
  const dueAt = read("scheduledFor");
  const expiresAt = read("expiresAt");
  if (expiresAt && expiresAt <= now) faults.push({ path: "/expiresAt", message: "must be in the future" });
  else if (expiresAt && dueAt && expiresAt <= dueAt)
    faults.push({ path: "/expiresAt", message: "must be after scheduledFor" });
  return faults;
}

const instant = new RegExp(INSTANT, "u");
// JavaScript reads 30 February as 2 March; PostgreSQL refuses it.
function isRealDay(text: string): boolean {
  const [year, month, day] = text.slice(0, 10).split("-").map(Number) as [number, number, number];
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

function otherRules({ content, recipient }: Fields): Fault[] {
  const faults: Fault[] = [];
  if (isObject(content) && content.templateVersion !== undefined && content.templateId === undefined) {
    faults.push({ path: "/content/templateVersion", message: "needs templateId" });
  }
  const zone = isObject(recipient) ? recipient.timezone : undefined;
  if (typeof zone === "string" && !isTimeZone(zone)) {
    faults.push({ path: "/recipient/timezone", message: "must be a time zone like Europe/Paris" });
  }
  return faults;
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
