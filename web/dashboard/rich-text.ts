// Slack's rich text: sections, lists, quotes and preformatted text, made of pieces with styles. Nothing in it can be clicked or is fetched:
// where a link leads is said in words, and so is who is mentioned.

import { type Fields, fieldsOf, listOf, textOf } from "./fields.ts";
import { type ComponentChildren, html, type VNode } from "./html.ts";

/** Of one block, parts and pieces together; what would be beyond is in the source, and does not keep the page busy. */
const MOST_PIECES = 500;
const MOST_INDENT = 8;
const MOST_NUMBER = 1_000_000;
/** Code points in hexadecimal, as `1f469-200d-1f4bb`; no more than any emoji has. */
const CODE_POINTS = /^[0-9a-f]{1,5}(-[0-9a-f]{1,5}){0,15}$/i;
const STYLES = Object.entries({ code: "code", strike: "s", underline: "u", italic: "em", bold: "strong" });

type Take = (elements: unknown) => Fields[];

export function RichText({ block }: { block: Fields }): VNode {
  let left = MOST_PIECES;
  const take: Take = (elements) => {
    const taken = listOf(elements, left);
    left -= taken.length;
    return taken;
  };
  return html`<div class="rich">${take(block.elements).map((part) => partOf(part, take))}</div>`;
}

function partOf(part: Fields, take: Take): VNode {
  const { type, elements } = part;
  if (type === "rich_text_list") return listIn(part, take);
  const pieces = take(elements).map(pieceOf);
  if (type === "rich_text_quote") return html`<blockquote>${pieces}</blockquote>`;
  if (type === "rich_text_preformatted") return html`<pre>${pieces}</pre>`;
  return html`<p>${pieces.length > 0 ? pieces : textOf(type)}</p>`;
}

/** Lists in lists are one after another there, each with its depth. */
function listIn({ style, indent, offset, elements }: Fields, take: Take): VNode {
  const items = take(elements).map((item) => html`<li>${take(item.elements).map(pieceOf)}</li>`);
  const place = { marginLeft: `${wholeIn(indent, MOST_INDENT) * 1.5}rem` };
  return style === "ordered"
    ? html`<ol start=${wholeIn(offset, MOST_NUMBER) + 1} style=${place}>${items}</ol>`
    : html`<ul style=${place}>${items}</ul>`;
}

const wholeIn = (value: unknown, most: number): number =>
  typeof value === "number" && value > 0 ? Math.min(Math.floor(value), most) : 0;

function pieceOf(piece: Fields): ComponentChildren {
  const style = fieldsOf(piece.style);
  return STYLES.filter(([name]) => style[name] === true).reduce<ComponentChildren>(
    (inner, [, tag]) => html`<${tag}>${inner}<//>`,
    wordsOf(piece),
  );
}

function wordsOf(piece: Fields): string {
  const { type, text, url, name } = piece;
  switch (type) {
    case "text":
      return textOf(text) ?? "";
    case "link": {
      const [words, leads] = [textOf(text), textOf(url) ?? "nowhere"];
      return words === undefined || words === leads ? leads : `${words} (${leads})`;
    }
    case "emoji":
      return emojiOf(piece.unicode) ?? `:${textOf(name) ?? "emoji"}:`;
    case "user":
      return `@user ${textOf(piece.user_id) ?? "of no name"}`;
    case "usergroup":
      return `@group ${textOf(piece.usergroup_id) ?? "of no name"}`;
    case "team":
      return `@team ${textOf(piece.team_id) ?? "of no name"}`;
    case "channel":
      return `#channel ${textOf(piece.channel_id) ?? "of no name"}`;
    case "broadcast":
      return `@${textOf(piece.range) ?? "channel"}`;
    case "date":
      return textOf(piece.fallback) ?? dateOf(piece.timestamp);
    case "color":
      return textOf(piece.value) ?? "a colour";
    default:
      return textOf(text) ?? textOf(type) ?? "something";
  }
}

function emojiOf(unicode: unknown): string | undefined {
  if (typeof unicode !== "string" || !CODE_POINTS.test(unicode)) return undefined;
  return String.fromCodePoint(...unicode.split("-").map((point) => Number.parseInt(point, 16)));
}

function dateOf(timestamp: unknown): string {
  const at = new Date(typeof timestamp === "number" ? timestamp * 1_000 : Number.NaN);
  return Number.isNaN(at.getTime()) ? "a date" : at.toISOString();
}
