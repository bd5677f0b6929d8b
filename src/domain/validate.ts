// Decides whether a request may be accepted, and lists every fault when it may not.

import { Ajv2020 } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import { type Channel, HEADER_NAME, INSTANT, NEEDS, NotificationRequest, RESERVED_HEADERS } from "./notification.ts";
import type { Fault } from "./problems.ts";
import { faultsOf, isRealDay, pointer, type Schema } from "./schema.ts";
import { isTimeZone } from "./time-zone.ts";

// Ajv only decides; faultsOf() finds the words. Of the formats, patterns check all but the calendar.
const ajv = new Ajv2020({ strict: false, allErrors: false });
ajv.addFormat("date-time", isRealDay);
ajv.addFormat("uuid", true);

export type Check = (value: unknown) => Fault[];

/**
 * Makes a schema into a check that is quick for values that fit and thorough for those that do not. It is compiled when it is
 * first needed.
 */
export function compile(schema: TSchema): Check {
  let fits: ((value: unknown) => boolean) | undefined;
  return (value) => {
    fits ??= ajv.compile(schema);
    if (fits(value)) return [];
    const faults = faultsOf(schema as Schema, value);
    // Should the walk not know a rule that Ajv knows, the value is still refused.
    return faults.length > 0 ? faults : [{ path: "", message: "is not valid" }];
  };
}

const checkShape = compile(NotificationRequest);

/** Every fault of a request to send; none means it can be stored as it is. */
export function faultsOfRequest(value: unknown, now: Date): Fault[] {
  const faults = storableFaults(value);
  if (faults.length > 0) return faults;
  faults.push(...checkShape(value));
  if (isObject(value)) {
    faults.push(...unmetNeeds(value), ...impossibleInstants(value, now), ...otherRules(value), ...idleCallbacks(value));
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
  const { channel } = request;
  if (typeof channel !== "string" || !Object.hasOwn(NEEDS, channel)) return [];
  const needs = NEEDS[channel as Channel];
  return (["recipient", "content"] as const).flatMap((part) => {
    const given = part === "recipient" && request.recipient === undefined ? {} : request[part];
    // A part of the wrong type, or a content that is missing, has a fault already.
    if (!isObject(given)) return [];
    return needs[part]
      .filter((names) => names.every((name) => given[name] === undefined))
      .map((names) => ({
        path: pointer(`/${part}`, names[0] as string),
        message:
          names.length === 1
            ? `is required for ${channel}`
            : `is required for ${channel}, or instead ${names.slice(1).join(" or ")}`,
      }));
  });
}

function impossibleInstants(request: Fields, now: Date): Fault[] {
  const read = (name: "scheduledFor" | "expiresAt"): Date | undefined => {
    const given = request[name];
    return typeof given === "string" && instant.test(given) && isRealDay(given) ? new Date(given) : undefined;
  };
  const dueAt = read("scheduledFor");
  const expiresAt = read("expiresAt");
  if (expiresAt && expiresAt <= now) return [{ path: "/expiresAt", message: "must be in the future" }];
  if (expiresAt && dueAt && expiresAt <= dueAt) return [{ path: "/expiresAt", message: "must be after scheduledFor" }];
  return [];
}

const instant = new RegExp(INSTANT, "u");

function otherRules({ content, recipient }: Fields): Fault[] {
  const faults: Fault[] = [];
  if (isObject(content) && content.templateVersion !== undefined && content.templateId === undefined) {
    faults.push({ path: "/content/templateVersion", message: "needs templateId" });
  }
  if (isObject(content) && isObject(content.headers)) faults.push(...headerFaults(content.headers));
  const zone = isObject(recipient) ? recipient.timezone : undefined;
  if (typeof zone === "string" && !isTimeZone(zone)) {
    faults.push({ path: "/recipient/timezone", message: "must be a time zone like Europe/Paris" });
  }
  return faults;
}

/** Said of callbacks, without where they go. */
const idleCallbacks = (request: Fields): Fault[] =>
  ["callbackPolicy", "callbackEvents"]
    .filter((name) => request[name] !== undefined && request.callbackUrl === undefined)
    .map((name) => ({ path: pointer("", name), message: "needs callbackUrl" }));

const headerName = new RegExp(HEADER_NAME, "u");

function headerFaults(headers: Fields): Fault[] {
  return Object.keys(headers).flatMap((name) => {
    const fault = faultOfHeader(name);
    return fault === undefined ? [] : [{ path: pointer("/content/headers", name), message: fault }];
  });
}

/** What a mail must not be given as a header of its own. */
export function faultOfHeader(name: string): string | undefined {
  if (!headerName.test(name)) return "must be the name of a header";
  return RESERVED_HEADERS.includes(name.toLowerCase()) ? "is set by Carillon itself" : undefined;
}
