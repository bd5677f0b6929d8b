// What a template holds, which fields a channel renders, and which variant a recipient reads.

import { type Static, Type } from "typebox";
import { CHANNELS, type Channel, strict } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { pointer } from "#domain/schema.ts";

/** A partial is a template that others include. It is never sent by itself. */
export const TEMPLATE_CHANNELS = [...CHANNELS, "partial"] as const;
export type TemplateChannel = (typeof TEMPLATE_CHANNELS)[number];

const source = Type.Optional(Type.String({ minLength: 1, maxLength: 262_144 }));

/** The fields of a notification's content, but with Liquid in their texts; `mjml` becomes `htmlBody`. */
export const TemplateFields = strict({
  subject: source,
  textBody: source,
  htmlBody: source,
  mjml: source,
  title: source,
  body: source,
  imageUrl: source,
  clickAction: source,
  icon: source,
  sound: source,
  badge: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  data: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 })),
});
export type TemplateFields = Static<typeof TemplateFields>;

// Not Type.Record: it writes patternProperties, which the walk that words the faults does not know.
const Locales = Type.Unsafe<{ [locale: string]: TemplateFields }>(
  Type.Object({}, { additionalProperties: TemplateFields, maxProperties: 100 }),
);

export const TemplateContent = strict({ ...TemplateFields.properties, locales: Type.Optional(Locales) });
export type TemplateContent = Static<typeof TemplateContent>;

const push = ["title", "body", "imageUrl", "clickAction", "icon", "sound", "badge", "data"];
const all = Object.keys(TemplateFields.properties);
const FIELDS: Readonly<Record<TemplateChannel, readonly string[]>> = {
  email: ["subject", "textBody", "htmlBody", "mjml"],
  push,
  sms: ["body"],
  slack: ["title", "body", "imageUrl", "clickAction", "data"],
  webhook: ["title", "body", "data"],
  inbox: push,
  console: all,
  file: all,
  partial: ["body"],
};

/** What the schema cannot say. */
export function faultsOfContent(channel: TemplateChannel, content: TemplateContent): Fault[] {
  const { locales, ...direct } = content;
  if (locales === undefined) return faultsOfFields(channel, direct, "/content");
  const faults: Fault[] = Object.keys(direct).map((field) => ({
    path: `/content/${field}`,
    message: "must be within locales, as the template has some",
  }));
  if (!Object.hasOwn(locales, "default")) faults.push({ path: "/content/locales/default", message: "is required" });
  for (const [locale, fields] of Object.entries(locales)) {
    const path = pointer("/content/locales", locale);
    if (!isLocale(locale)) faults.push({ path, message: "must be a language tag like fr-CA, or default" });
    faults.push(...faultsOfFields(channel, fields, path));
  }
  return faults;
}

function faultsOfFields(channel: TemplateChannel, fields: TemplateFields, path: string): Fault[] {
  const used = FIELDS[channel];
  const names = Object.keys(fields);
  const faults = names
    .filter((name) => !used.includes(name))
    .map((name) => ({ path: `${path}/${name}`, message: `is not used by ${channel}` }));
  if (names.length === 0) faults.push({ path, message: `must have ${used.join(" or ")}` });
  if (fields.mjml !== undefined && fields.htmlBody !== undefined) {
    faults.push({ path: `${path}/mjml`, message: "must not stand beside htmlBody, which is made of it" });
  }
  return faults;
}

function isLocale(name: string): boolean {
  if (name === "default") return true;
  try {
    return Intl.getCanonicalLocales(name).length === 1;
  } catch {
    return false;
  }
}

export const DEFAULT_LOCALE = "default";
export type Variant = { locale: string; fields: TemplateFields };

/** For fr-CA: the variant fr-CA, else fr, else the default. A variant is taken whole, so that languages never mix. */
export function pickVariant(content: TemplateContent, wanted: string | undefined): Variant {
  const { locales, ...direct } = content;
  if (locales === undefined) return { locale: DEFAULT_LOCALE, fields: direct };
  for (let tag = wanted?.toLowerCase() ?? ""; tag !== ""; tag = tag.slice(0, Math.max(0, tag.lastIndexOf("-")))) {
    const found = Object.entries(locales).find(([locale]) => locale.toLowerCase() === tag);
    if (found) return { locale: found[0], fields: found[1] };
  }
  return { locale: DEFAULT_LOCALE, fields: locales[DEFAULT_LOCALE] ?? {} };
}

export function variantsOf({ locales, ...direct }: TemplateContent): (Variant & { path: string })[] {
  if (locales === undefined) return [{ locale: DEFAULT_LOCALE, fields: direct, path: "/content" }];
  return Object.entries(locales).map(([locale, fields]) => ({
    locale,
    fields,
    path: pointer("/content/locales", locale),
  }));
}

/** Everything a render needs but the variables. It does not change, so what is compiled of it can be kept. */
export type Source = {
  /** Whose it is: tenants take turns. */
  tenant: number;
  fields: TemplateFields;
  /** The texts of the partials that may be included, by name. */
  partials: { readonly [name: string]: string };
  /** Of the chosen variant: names of days and months go by it. */
  locale: string;
  /** An unknown variable is an error, not an empty text. */
  strict: boolean;
};

export type Variables = { readonly [name: string]: unknown };
export type TemplateError = {
  message: string;
  line?: number;
  /** A JSON Pointer without its first slash: `subject`, `data/link`. */
  field?: string;
  /**
   * Nothing is known to be wrong with the template, and it may well be rendered later: it took too long, which is also
   * how a busy machine looks, or there was no thread for it. Without this, it will not be rendered any other time.
   */
  why?: "slow" | "busy";
};
export type Rendered = { ok: true; fields: TemplateFields } | { ok: false; error: TemplateError };

/** As people read it. */
export const told = ({ message, line }: TemplateError): string =>
  line === undefined ? message : `line ${line}: ${message}`;

/** No part of it looks past the next tag: a hostile text costs no more than its size. */
const INCLUSION = /\b(?:render|include|layout)\s+["']([^"']+)["']|<mj-include\b[^<>]*?\bpath=["']([^"']+)["']/g;

/**
 * The partials that a text may include, and perhaps some that it only mentions: which to have at hand. Names must be
 * given as they are; one that comes out of a variable is not found.
 */
export function partialsIn(text: string): string[] {
  return [...text.matchAll(INCLUSION)].map(([, liquid, mjml]) => liquid ?? mjml ?? "");
}

/** Every text within a value, with its path. */
export function textsIn(value: unknown, path = ""): { path: string; text: string }[] {
  if (typeof value === "string") return [{ path, text: value }];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => textsIn(inner, path === "" ? name : `${path}/${name}`));
}

/** A template made for one channel serves it alone; console and file print anything. */
export const mayCarry = (channel: Channel, template: TemplateChannel): boolean =>
  template !== "partial" && (template === channel || channel === "console" || channel === "file");
