// MJML to HTML, once per template: the Liquid in it goes through untouched and is rendered afterwards, for each message.
//
// The other order, Liquid first, would cost milliseconds per message and let a variable's text be read as MJML. The
// price: Liquid must stand where MJML keeps text, in a component's content, in an attribute, or in <mj-raw>.

import { type Liquid, Tokenizer, TypeGuards } from "liquidjs";
import type mjml2html from "mjml";
import { cut } from "#domain/text.ts";
import { DEFAULT_LOCALE, type Source, type TemplateError } from "./template.ts";

export type Mjml = typeof mjml2html;

/** `lineAt` gives, for a place in the HTML, the line of the MJML it comes from. */
export type Converted =
  | { ok: true; html: string; lineAt: (offset: number) => number }
  | { ok: false; errors: TemplateError[] };

type Expanded = { text: string; lines: number[] };
type Partials = { readonly [name: string]: string };

export async function convertMjml(
  mjml: Mjml,
  engine: Liquid,
  source: string,
  { partials, locale }: Pick<Source, "partials" | "locale">,
): Promise<Converted> {
  const expanded = expand(source, partials);
  if ("message" in expanded) return { ok: false, errors: [expanded] };
  const { text, lines } = expanded;
  const lineOf = (line = 1) => lines[line - 1] ?? line;
  const tokens = new Tokenizer(text, engine.options.operators)
    .readTopLevelTokens(engine.options)
    .filter((token) => !TypeGuards.isHTMLToken(token));

  // Liquid is not XML: `{% if a < b %}` would end the parse. MJML sees words instead.
  let mark = "liquid";
  while (text.includes(mark)) mark += "q";
  let marked = "";
  let reached = 0;
  for (const [index, { begin, end }] of tokens.entries()) {
    // Line breaks within a tag are kept beside the word, so that MJML counts lines as we do.
    marked += `${text.slice(reached, begin)}${mark}${index}z${"\n".repeat(text.slice(begin, end).split("\n").length - 1)}`;
    reached = end;
  }
  marked += text.slice(reached);

  let result: Awaited<ReturnType<Mjml>>;
  try {
    // No fonts but those that the template names itself: MJML would have every reader load them from Google.
    result = await mjml(inLanguage(marked, locale), { validationLevel: "soft", ignoreIncludes: true, fonts: {} });
  } catch (error) {
    return { ok: false, errors: [{ message: error instanceof Error ? error.message : "not MJML" }] };
  }
  // MJML cannot judge an attribute whose value is not known yet.
  const errors = result.errors
    .filter(({ message }) => !message.includes(mark))
    .map(({ line, message, tagName }): TemplateError => ({ message: `<${tagName}>: ${message}`, line: lineOf(line) }));
  for (const [index, token] of tokens.entries()) {
    if (!result.html.includes(`${mark}${index}z`)) {
      const message = `MJML drops ${cut(token.getText(), 60)} here: put it into <mj-raw>, a text or an attribute that is kept`;
      errors.push({ message, line: lineOf(token.getPosition()[0]) });
    }
  }
  if (errors.length > 0) return { ok: false, errors };

  // Where nobody said which language it is, MJML says `und`; a reader's software does better with no word at all.
  const written = result.html.replaceAll(' lang="und"', "");
  const places: { offset: number; line: number }[] = [];
  let html = "";
  let from = 0;
  for (const match of written.matchAll(new RegExp(`${mark}(\\d+)z`, "g"))) {
    const token = tokens[Number(match[1])];
    if (!token) continue;
    html += written.slice(from, match.index);
    places.push({ offset: html.length, line: lineOf(token.getPosition()[0]) });
    html += token.getText();
    from = match.index + match[0].length;
  }
  html += written.slice(from);
  return { ok: true, html, lineAt: (offset) => places.findLast((place) => place.offset <= offset)?.line ?? 1 };
}

/** The language of the variant, unless the template names one itself. */
const inLanguage = (text: string, locale: string): string =>
  locale === DEFAULT_LOCALE ? text : text.replace(/<mjml(?=[\s>])(?![^>]*\slang=)/, `<mjml lang="${locale}"`);

const INCLUDE = /<mj-include\b[^>]*?\bpath=["']([^"']*)["'][^>]*?(?:\/>|>\s*<\/mj-include>)/g;
const MAX_DEPTH = 8;

/** Puts the partials in the place of `<mj-include path="name" />`. Their lines count as the line of the inclusion. */
function expand(source: string, partials: Partials, depth = 0): Expanded | TemplateError {
  let text = "";
  const lines: number[] = [1];
  let line = 1;
  const add = (piece: string, isIncluded: boolean) => {
    for (const char of piece.matchAll(/\n/g)) {
      if (char && !isIncluded) line += 1;
      lines.push(line);
    }
    text += piece;
  };
  let reached = 0;
  for (const match of source.matchAll(INCLUDE)) {
    const name = match[1] ?? "";
    add(source.slice(reached, match.index), false);
    const partial = Object.hasOwn(partials, name) ? partials[name] : undefined;
    if (partial === undefined) return { message: `there is no partial ${name}`, line };
    if (depth >= MAX_DEPTH) return { message: `the partial ${name} is included more than ${MAX_DEPTH} deep`, line };
    const inner = expand(partial, partials, depth + 1);
    if ("message" in inner) return { message: inner.message, line };
    add(inner.text, true);
    // The inclusion itself may be written over several lines.
    line += match[0].split("\n").length - 1;
    lines[lines.length - 1] = line;
    reached = match.index + match[0].length;
  }
  add(source.slice(reached), false);
  return { text, lines };
}
