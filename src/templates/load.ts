// From a request that names a template to one that says what is sent.
//
// Templates are read from the database every few seconds at most; a change is seen by other processes after that
// time, and at once by the one that made it.

import type { NotificationRequest } from "#domain/notification.ts";
import { rankOf } from "#domain/priority.ts";
import { faultsOfRequest } from "#domain/validate.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findPartials, findTemplate, type StoredTemplate } from "#store/templates.ts";
import type { Renderer } from "./renderer.ts";
import {
  mayCarry,
  partialsIn,
  pickVariant,
  type Rendered,
  type Source,
  type TemplateChannel,
  type TemplateContent,
  type TemplateError,
  textsIn,
  type Variables,
  variantsOf,
} from "./template.ts";

export type TemplatesOptions = {
  db: Queryable;
  /** For what people ask about their templates, rather than for deliveries. */
  asked?: Queryable;
  renderer: Renderer;
  now: () => number;
  freshMs?: number;
};

type Recipient = NonNullable<NotificationRequest["recipient"]>;
type Partials = ReadonlyMap<string, TemplateContent>;
type Loaded = {
  tenant: number;
  channel: TemplateChannel;
  content: TemplateContent;
  strict: boolean;
  partials: Partials;
};
type Kept = { readAt: number; loaded: Promise<Loaded | undefined>; sources: Map<string, Source> };

export type Reading = { variables: Variables; locale?: string | undefined; recipient?: Recipient | undefined };
export type Templates = {
  /**
   * The request with the rendered fields over those it gave, and without what named the template. A request without a
   * template comes back as it is. Throws only when the database is away. `rank` where it is not what the request asked for.
   */
  render(
    tenant: number,
    request: NotificationRequest,
    rank?: number,
  ): Promise<{ request: NotificationRequest } | { error: TemplateError }>;
  /** As one recipient would read it. */
  preview(tenant: number, template: StoredTemplate, reading: Reading): Promise<{ locale: string; rendered: Rendered }>;
  /** Every error in every variant, each with the path of its field. */
  check(
    tenant: number,
    channel: TemplateChannel,
    content: TemplateContent,
  ): Promise<(TemplateError & { path: string })[]>;
  /** Something of this tenant was changed here. */
  forget(tenant: number): void;
};

const FRESH_MS = 5_000;
const KEPT = 1_000;
const KEPT_LOCALES = 50;
/** Partials within partials. */
const MAX_DEPTH = 8;
/** These end up in headers or URLs, where a line break would begin something else. */
const LINES = ["subject", "imageUrl", "clickAction", "icon", "sound"] as const;

export function createTemplates({ db, asked = db, renderer, now, freshMs = FRESH_MS }: TemplatesOptions): Templates {
  const kept = new Map<string, Kept>();

  const load = (tenant: number, id: string, version: number | undefined): Kept => {
    const key = `${tenant} ${version ?? ""} ${id}`;
    const found = kept.get(key);
    if (found && now() - found.readAt < freshMs) return found;
    const fresh: Kept = { readAt: now(), loaded: read(tenant, id, version), sources: new Map() };
    kept.delete(key);
    kept.set(key, fresh);
    const [oldest] = kept.size > KEPT ? kept.keys() : [];
    if (oldest !== undefined) kept.delete(oldest);
    // An outage is not remembered.
    fresh.loaded.catch(() => {
      if (kept.get(key) === fresh) kept.delete(key);
    });
    return fresh;
  };
  const read = async (tenant: number, id: string, version: number | undefined): Promise<Loaded | undefined> => {
    const stored = await findTemplate(db, tenant, id, version);
    return stored && withPartials(db, tenant, stored);
  };
  const withPartials = async (from: Queryable, tenant: number, stored: StoredTemplate): Promise<Loaded> => {
    const content = stored.content as TemplateContent;
    return {
      tenant,
      channel: stored.channel as TemplateChannel,
      content,
      strict: stored.strict,
      partials: await readPartials(from, tenant, content),
    };
  };
  const readPartials = async (from: Queryable, tenant: number, content: TemplateContent): Promise<Partials> => {
    const partials = new Map<string, TemplateContent>();
    let wanted = namesIn(content);
    for (let depth = 0; depth < MAX_DEPTH && wanted.size > 0; depth++) {
      const found = await findPartials(from, tenant, [...wanted]);
      for (const partial of found) partials.set(partial.id, partial.content as TemplateContent);
      const inner = found.flatMap((partial) => [...namesIn(partial.content)]);
      wanted = new Set(inner.filter((name) => !partials.has(name)));
    }
    return partials;
  };

  return {
    async render(tenant, request, rank = rankOf[request.priority ?? "normal"]) {
      const { templateId, templateVersion, variables = {}, ...given } = request.content;
      if (templateId === undefined) return { request };
      const { loaded, sources } = load(tenant, templateId, templateVersion);
      const template = await loaded;
      if (!template) {
        const which = templateVersion === undefined ? "" : ` version ${templateVersion} of`;
        return { error: { message: `there is no${which} template ${templateId}` } };
      }
      if (!mayCarry(request.channel, template.channel)) {
        return { error: { message: `the template ${templateId} is for ${template.channel}, not ${request.channel}` } };
      }
      const locale = request.recipient?.locale ?? "";
      const source = sources.get(locale) ?? sourceOf(template, locale);
      if (sources.size < KEPT_LOCALES) sources.set(locale, source);
      const rendered = await renderer.render(source, scopeOf(variables, request.recipient), rank);
      if (!rendered.ok) return { error: rendered.error };
      const content = { ...given, ...inLine(rendered.fields) };
      return checked({ ...request, content });
    },
    async preview(tenant, stored, { variables, locale, recipient }) {
      const template = await withPartials(asked, tenant, stored);
      const wanted = locale ?? recipient?.locale ?? "";
      const rendered = await renderer.render(sourceOf(template, wanted), scopeOf(variables, recipient));
      return {
        locale: pickVariant(template.content, wanted).locale,
        rendered: rendered.ok ? { ok: true, fields: inLine(rendered.fields) } : rendered,
      };
    },
    async check(tenant, channel, content) {
      const partials = await readPartials(asked, tenant, content);
      const errors: (TemplateError & { path: string })[] = [];
      for (const { locale, path } of variantsOf(content)) {
        const found = await renderer.check(sourceOf({ tenant, channel, content, strict: false, partials }, locale));
        errors.push(...found.map((error) => ({ ...error, path: error.field ? `${path}/${error.field}` : path })));
      }
      return errors;
    },
    forget(tenant) {
      for (const key of kept.keys()) if (key.startsWith(`${tenant} `)) kept.delete(key);
    },
  };
}

const namesIn = (content: unknown) => new Set(textsIn(content).flatMap(({ text }) => partialsIn(text)));

function sourceOf({ tenant, content, strict, partials }: Loaded, wanted: string): Source {
  const { locale, fields } = pickVariant(content, wanted);
  const texts = [...partials].map(([name, partial]) => [name, pickVariant(partial, wanted).fields.body ?? ""]);
  return { tenant, fields, locale, strict, partials: Object.fromEntries(texts) };
}

/** Device tokens are secrets, and no text needs them. */
function scopeOf(variables: Variables, recipient: Recipient = {}): Variables {
  const { deviceTokens: _, ...known } = recipient;
  return { ...variables, recipient: known };
}

/** An empty text is none: what the request gave itself stands then. */
function inLine(fields: Source["fields"]): Source["fields"] {
  const told = Object.entries(fields).filter(([, value]) => typeof value !== "string" || value.trim() !== "");
  const content: Source["fields"] = Object.fromEntries(told);
  for (const name of LINES) {
    const text = content[name];
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
    if (text !== undefined) content[name] = text.replace(/[\u0000-\u001f\u007f]+/g, " ").trim();
  }
  return content;
}

/** What the variables made of it must still be a message that could have been sent without a template. */
function checked(request: NotificationRequest): { request: NotificationRequest } | { error: TemplateError } {
  // Its instants were looked at when it was accepted, and do not matter any more.
  const { channel, recipient = {}, content } = request;
  const [fault] = faultsOfRequest({ channel, recipient, content }, new Date(0));
  if (!fault) return { request };
  const field = fault.path.startsWith("/content/") ? { field: fault.path.slice("/content/".length) } : {};
  return { error: { message: `${fault.path} ${fault.message}`, ...field } };
}
