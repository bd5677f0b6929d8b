// The text alternative of a mail that came as HTML only: what a reader without HTML would want to see.
//
// Not a parser: HTML in mail is often broken, and a wrong guess costs a blank line, not a message. It walks over the
// tokens once, and no pattern looks past the next `<`, so that a hostile body costs no more than its size.

/** A comment, a declaration such as `<!doctype html>`, a tag, or the text up to the next of them. */
const TOKEN = /<!--[\s\S]*?(?:-->|$)|<[!?][^<>]*>|<(\/?)([a-z][a-z0-9]*)([^<>]*)>|[^<]+|</gi;
const HREF = /\shref\s*=\s*("([^"]*)"|'([^']*)'|[^\s"']+)/i;
const ALT = /\salt\s*=\s*("([^"]*)"|'([^']*)')/i;

const SILENT = new Set(["style", "script", "head", "title"]);
const LINES = new Set(["div", "tr", "li", "dt", "dd", "address"]);
const PARAGRAPHS = new Set([
  ...["p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "blockquote", "pre", "hr"],
  ...["section", "article", "header", "footer"],
]);

export function plainTextOf(html: string): string {
  const out: string[] = [];
  let isLineBegun = false;
  /** Inside this element nothing is shown. */
  let silent: string | undefined;
  let link: { target: string; from: number } | undefined;

  const show = (text: string) => {
    out.push(text);
    isLineBegun ||= text.trim() !== "";
  };
  const end = (line: string) => {
    out.push(line);
    isLineBegun = false;
  };

  for (const [token, slash = "", tag, attributes = ""] of html.matchAll(TOKEN)) {
    const name = tag?.toLowerCase();
    const isClosing = slash !== "";
    if (silent !== undefined) {
      if (isClosing && name === silent) silent = undefined;
    } else if (name === undefined) {
      // Line breaks in the source are spaces to a reader of HTML.
      if (!/^<[!?]/.test(token)) show(decodeEntities(token.replace(/\s+/g, " ")));
    } else if (!isClosing && SILENT.has(name)) {
      silent = name;
    } else if (name === "a") {
      if (link) show(targetAfter(out.slice(link.from).join("").trim(), link.target));
      link = isClosing ? undefined : { target: decodeEntities(attribute(HREF, attributes)), from: out.length };
    } else if (name === "img") {
      show(decodeEntities(attribute(ALT, attributes)));
    } else if (name === "td" || name === "th") {
      show(" ");
    } else if (PARAGRAPHS.has(name)) {
      end("\n\n");
    } else if (name === "br" || (LINES.has(name) && isLineBegun)) {
      end("\n");
    }
    if (name === "li" && !isClosing && silent === undefined) out.push("- ");
  }
  return out
    .join("")
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n ?/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** Where a link leads, after its words. Places within the page and addresses already shown would only be noise. */
function targetAfter(words: string, target: string): string {
  if (!/^(https?|mailto|tel):/i.test(target)) return "";
  const address = target.replace(/^(mailto|tel):/i, "");
  if (words === address) return "";
  return words === "" ? address : ` (${address})`;
}

const attribute = (pattern: RegExp, attributes: string): string => {
  const [, whole = "", double, single] = pattern.exec(attributes) ?? [];
  return (double ?? single ?? whole).trim();
};

const NAMED: { readonly [name: string]: string } = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  shy: "",
  zwnj: "",
  copy: "©",
  reg: "®",
  trade: "™",
  hellip: "…",
  ndash: "–",
  mdash: "—",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  laquo: "«",
  raquo: "»",
  bull: "•",
  middot: "·",
  euro: "€",
  pound: "£",
  times: "×",
  rarr: "→",
};

/** Once, so that `&amp;lt;` stays `&lt;`. Names it does not know stay as they are. */
function decodeEntities(text: string): string {
  return text.replace(/&(#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z]{2,8});/gi, (entity, name: string) => {
    if (!name.startsWith("#")) return NAMED[name] ?? entity;
    const point = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    const isText =
      (point >= 32 || point === 9 || point === 10) && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    return isText ? String.fromCodePoint(point) : "";
  });
}
