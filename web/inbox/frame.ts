// The elements of the bell and its panel, and where the panel opens.

import { create, icon } from "./elements.ts";
import type { Texts } from "./texts.ts";

export type Frame = ReturnType<typeof createFrame>;

const PANEL_WIDTH = 380;
const GAP = 8;
/** With less below it than this, the panel opens upwards. */
const ROOM = 240;

export function createFrame(texts: Texts) {
  const badge = create("span", { class: "badge", part: "badge", "aria-hidden": "true" });
  const bell = create("button", { type: "button", class: "bell", part: "bell", "aria-controls": "panel" });
  bell.append(icon("bell"), badge);
  const live = create("div", { class: "quiet", role: "status", "aria-live": "polite" });
  const readAll = create("button", { type: "button", class: "text", part: "read-all" }, texts.readAll);
  const retry = create("button", { type: "button", class: "text", part: "retry" }, texts.retry);
  const bannerText = create("span");
  const banner = create("div", { class: "banner", part: "banner", role: "status" }, bannerText, retry);
  const list = create("ul", { role: "list", part: "list" });
  const note = create("p", { class: "note", part: "note" });
  const end = create("div", { class: "end" });
  const scroll = create("div", { class: "scroll" }, list, note, end);
  const header = create("header", {}, create("h2", { id: "label" }, texts.label), readAll);
  const panel = create("div", {
    id: "panel",
    class: "panel",
    part: "panel",
    role: "dialog",
    tabindex: "-1",
    "aria-labelledby": "label",
  });
  panel.append(header, banner, scroll);
  panel.hidden = true;
  return { badge, bell, live, readAll, retry, bannerText, banner, list, note, end, scroll, panel };
}

/** Where there is room; on a small screen across it, but never over the bell, which closes it again. */
export function place({ bell, panel }: Frame): void {
  const { top, bottom, right } = bell.getBoundingClientRect();
  panel.classList.toggle("start", right < PANEL_WIDTH);
  panel.classList.toggle("above", innerHeight - bottom < Math.min(ROOM, top));
  panel.style.setProperty("--_below", `${bottom + GAP}px`);
  panel.style.setProperty("--_above", `${innerHeight - top + GAP}px`);
}

/** The row that an arrow key leads to from the one that has the focus; undefined for other keys. */
export function rowAfter(key: string, { list }: Frame): HTMLElement | undefined {
  const stops = [...list.querySelectorAll<HTMLElement>(".main")];
  const at = stops.findIndex((stop) => stop.closest("li")?.matches(":focus-within"));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1 }[key];
  return to === undefined ? undefined : stops[Math.max(0, Math.min(to, stops.length - 1))];
}
