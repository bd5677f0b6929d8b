// A template's texts, parsed once and rendered for each message.
//
// Templates are written by tenants, so Liquid gets no file system, no prototypes and three limits: time, memory and the
// length of any text it builds. What gets past them ends with the thread (see renderer.ts).

import { Context, type Emitter, Liquid, LiquidError, type Template, toValueSync } from "liquidjs";
import { convertMjml, type Mjml } from "./mjml.ts";
import type { Source, TemplateError, TemplateFields, Variables } from "./template.ts";

export type Limits = {
  /** Of the processor's time, where Node can tell. */
  renderMs: number;
  /** Of all fields together, and of any text on the way there. */
  outputBytes: number;
};

type Text = { field: string; source: string; engine: Liquid; parsed: Template[]; lineAt?: (offset: number) => number };
type Part =
  | { kind: "value"; value: unknown }
  | { kind: "text"; text: Text }
  | { kind: "list"; items: Part[] }
  | { kind: "object"; entries: [string, Part][] };
export type Compiled = { ok: true; root: Part; strict: boolean } | { ok: false; errors: TemplateError[] };
export type Filled = { ok: true; fields: TemplateFields } | { ok: false; errors: TemplateError[] };

/** Counts of array items and characters, as Liquid counts them; about 20 MB at worst. */
const MEMORY_LIMIT = 2_000_000;

export async function compile(source: Source, limits: Limits, loadMjml: () => Promise<Mjml>): Promise<Compiled> {
  const plain = createEngine(source, limits);
  const html = createEngine(source, limits, "escape");
  const errors: TemplateError[] = [];

  const read = async (value: unknown, field: string): Promise<Part> => {
    if (typeof value === "string") return readText(value, field);
    if (value === null || typeof value !== "object") return { kind: "value", value };
    const inner = async ([name, item]: [string, unknown]): Promise<[string, Part]> => [
      field === "" && name === "mjml" ? "htmlBody" : name,
      await read(item, field === "" ? name : `${field}/${name}`),
    ];
    const entries = await Promise.all(Object.entries(value).map(inner));
    if (Array.isArray(value)) return { kind: "list", items: entries.map(([, part]) => part) };
    return { kind: "object", entries };
  };

  const readText = async (text: string, field: string): Promise<Part> => {
    const engine = field === "htmlBody" || field === "mjml" ? html : plain;
    // Outside: if it cannot be loaded, that is no fault of the template.
    const mjml = field === "mjml" ? await loadMjml() : undefined;
    try {
      // In this order: a fault in the Liquid is told with its line in the MJML.
      const parsed = engine.parse(text);
      if (!mjml) {
        return text.includes("{")
          ? { kind: "text", text: { field, source: text, engine, parsed } }
          : { kind: "value", value: text };
      }
      const converted = await convertMjml(mjml, engine, text, source);
      if (converted.ok) {
        const { html, lineAt } = converted;
        return { kind: "text", text: { field, source: text, engine, parsed: parseAt(engine, html, lineAt), lineAt } };
      }
      errors.push(...converted.errors.map((error) => ({ ...error, field })));
    } catch (error) {
      errors.push(errorOf(error, field));
    }
    return { kind: "value", value: "" };
  };

  const root = await read(source.fields, "");
  return errors.length > 0 ? { ok: false, errors } : { ok: true, root, strict: source.strict };
}

export function fill({ root, strict }: Compiled & { ok: true }, variables: Variables, limits: Limits): Filled {
  let bytes = 0;
  const render = (part: Part): unknown => {
    switch (part.kind) {
      case "value":
        // What the template says itself is bounded by what may be stored, and counts all the same.
        if (typeof part.value === "string") bytes += Buffer.byteLength(part.value);
        return part.value;
      case "list":
        return part.items.map(render);
      case "object":
        return Object.fromEntries(part.entries.map(([name, inner]) => [name, render(inner)]));
      case "text": {
        const { engine, parsed, field } = part.text;
        const options = { sync: true, strictVariables: strict };
        try {
          const context = new Context({ ...variables }, engine.options, options, { liquid: engine });
          limitTime(context, limits.renderMs);
          // Filters such as split cut emoji in half. A mark in their place is better than no message.
          const text = String(toValueSync(engine.renderer.renderTemplates(parsed, context))).toWellFormed();
          bytes += Buffer.byteLength(text);
          if (bytes > limits.outputBytes) throw new Error(tooLong(limits));
          return text;
        } catch (error) {
          throw new Failure(errorOf(error, field, part.text.lineAt));
        }
      }
    }
  };
  try {
    return { ok: true, fields: render(root) as TemplateFields };
  } catch (error) {
    if (error instanceof Failure) return { ok: false, errors: [error.told] };
    throw error;
  }
}

/** What this thread has used of the processor; from Node 23.9 on. */
export const cpuMs: (() => number) | undefined =
  process.threadCpuUsage &&
  (() => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  });

/** Liquid asks between tags whether it is time to stop. It would go by the clock on the wall, as if it were alone here. */
function limitTime(context: Context, mostMs: number): void {
  const used = cpuMs ?? (() => performance.now());
  const from = used();
  let lookAt = performance.now() + mostMs;
  context.renderLimit.check = (now) => {
    if (now < lookAt) return;
    const leftMs = mostMs - (used() - from);
    if (leftMs <= 0) throw new Error(OVER_TIME);
    lookAt = now + leftMs;
  };
}

/** Without rendering: whether the partials are there and can be parsed. */
export function examine({ root }: Compiled & { ok: true }): Filled {
  const errors: TemplateError[] = [];
  const look = (part: Part): void => {
    if (part.kind === "list") part.items.forEach(look);
    if (part.kind === "object") for (const [, inner] of part.entries) look(inner);
    if (part.kind !== "text") return;
    const { engine, parsed, field, source, lineAt } = part.text;
    try {
      engine.analyzeSync(parsed, { partials: true });
    } catch (error) {
      const told = errorOf(error, field, lineAt);
      const line = told.line ?? lineOfMissing(told.message, source);
      errors.push({ ...told, ...(line !== undefined && { line }) });
    }
  };
  look(root);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, fields: {} };
}

/** Liquid does not say where a partial is included that is not there. */
function lineOfMissing(message: string, source: string): number | undefined {
  const name = /^there is no partial (.*)$/.exec(message)?.[1];
  const at = name === undefined ? -1 : Math.max(source.indexOf(`"${name}"`), source.indexOf(`'${name}'`));
  return at === -1 ? undefined : source.slice(0, at).split("\n").length;
}

class Failure extends Error {
  readonly told: TemplateError;
  constructor(told: TemplateError) {
    super(told.message);
    this.told = told;
  }
}

function createEngine({ partials, locale }: Source, limits: Limits, outputEscape?: "escape"): Liquid {
  const engine = new Liquid({
    ownPropertyOnly: true,
    strictFilters: true,
    // Without a prototype, so that {% render "constructor" %} finds nothing.
    templates: Object.assign(Object.create(null), partials),
    cache: true,
    // Not the server's: a message reads the same wherever it was rendered.
    timezoneOffset: 0,
    locale: locale === "default" ? "en" : locale,
    memoryLimit: MEMORY_LIMIT,
    ...(outputEscape && { outputEscape }),
  });
  // Also what {% capture %} and {% block %} collect: a text that doubles itself forty times costs Liquid nothing at first.
  const { renderer } = engine;
  const renderTemplates = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = (templates, context, emitter = createEmitter(limits)) =>
    renderTemplates(templates, context, emitter);
  return engine;
}

function createEmitter(limits: Limits): Emitter {
  return {
    buffer: "",
    write(piece: unknown) {
      // Liquid gives texts and, where no escaping made a text of it, plain values.
      this.buffer += asText(piece);
      if (this.buffer.length > limits.outputBytes) throw new Error(tooLong(limits));
    },
  };
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(asText).join("") : String(value);
}

const tooLong = ({ outputBytes }: Limits) => `the text is longer than ${outputBytes} bytes`;

function parseAt(engine: Liquid, html: string, lineAt: (offset: number) => number): Template[] {
  try {
    return engine.parse(html);
  } catch (error) {
    throw new Failure(errorOf(error, "mjml", lineAt));
  }
}

const OVER_TIME = "template render limit exceeded";
const TOO_SLOW = "takes too long";

function errorOf(error: unknown, field: string, lineAt?: (offset: number) => number): TemplateError {
  if (error instanceof Failure) return { ...error.told, field };
  const message = wordsOf(error);
  if (!LiquidError.is(error)) return { message, field };
  const [line = 1] = error.token.getPosition();
  const why = message === TOO_SLOW ? { why: "slow" as const } : {};
  // A partial has lines of its own.
  const { file } = error.token;
  if (file) return { message: `in the partial ${file}: ${message}`, line, field, ...why };
  return { message, line: lineAt ? lineAt(error.token.begin) : line, field, ...why };
}

/** What Liquid and JavaScript say, in our words. */
function wordsOf(error: unknown): string {
  const given = error instanceof Error ? error.message : String(error);
  const message = given.replace(/(, file:[^,]*)?, line:\d+, col:\d+/g, "");
  const missing = /^ENOENT: Failed to lookup "([^"]*)"/.exec(message);
  if (missing) return `there is no partial ${missing[1]}`;
  if (message === OVER_TIME) return TOO_SLOW;
  if (message === "memory alloc limit exceeded") return "needs too much memory";
  return /Maximum call stack/.test(message) ? "is nested too deeply" : message;
}
