// Building blocks of the view. Text goes in as text, always: there is no way from here to HTML.

type Attributes = { [name: string]: string };

export function create<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const SHAPES = {
  bell: "M6 9a6 6 0 0 1 12 0c0 5 2 6.5 2 6.5H4S6 14 6 9M10 19.5a2.2 2.2 0 0 0 4 0",
  check: "M5 12.5l4.5 4.5L19 7.5",
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 13h4",
};

export function icon(name: keyof typeof SHAPES): SVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", SHAPES[name]);
  svg.append(path);
  return svg;
}

const STEPS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;
const DAYS_TOLD = 7;

/** "5 minutes ago"; after a week, the date. */
export function ago(instant: string, nowMs: number, language: string): string {
  const atMs = Date.parse(instant);
  if (Number.isNaN(atMs)) return "";
  const seconds = (atMs - nowMs) / 1000;
  if (seconds < -DAYS_TOLD * 86_400) return new Date(atMs).toLocaleDateString(language, { dateStyle: "medium" });
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  for (const [unit, size] of STEPS) if (seconds <= -size) return format.format(Math.ceil(seconds / size), unit);
  return format.format(0, "second");
}
