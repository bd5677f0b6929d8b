// The bell and its panel, drawn from the state. Rows are kept by id, so that neither focus nor scrolling is lost when
// something arrives. While the panel is closed only the badge is drawn.

import type { InboxNotification } from "./api.ts";
import { create, icon } from "./elements.ts";
import type { InboxState } from "./inbox.ts";
import { createRow, type Row } from "./row.ts";
import type { Texts } from "./texts.ts";

export type ViewHandlers = {
  onToggle: (isOpen: boolean) => void;
  onOpen: (item: InboxNotification, event: Event, link: URL | undefined) => void;
  onRead: (id: string) => void;
  onArchive: (id: string) => void;
  onReadAll: () => void;
  onRetry: () => void;
  onShown: (ids: string[]) => void;
  onEnd: () => void;
};

export type View = {
  nodes: Node[];
  render(state: InboxState): void;
  announce(notification: InboxNotification): void;
  toggle(isOpen: boolean): void;
};

const DRAWN_AT_ONCE = 20;
const ANNOUNCE_WAIT_MS = 400;
const LARGEST_BADGE = 99;
const PANEL_WIDTH = 380;
const GAP = 8;
/** With less below it than this, the panel opens upwards. */
const ROOM = 240;

export function createView(texts: Texts, language: string, handlers: ViewHandlers): View {
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

  const rows = new Map<string, Row>();
  let state: InboxState | undefined;
  let limit = DRAWN_AT_ONCE;
  let arrived = 0;
  let announcing: ReturnType<typeof setTimeout> | undefined;

  const watcher = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => target);
      const ids = seen.flatMap((target) => (target instanceof HTMLElement && target.dataset.id) || []);
      for (const target of seen) watcher.unobserve(target);
      if (ids.length > 0) handlers.onShown(ids);
      if (!seen.includes(end) || !state) return;
      if (limit < state.items.length) {
        limit += DRAWN_AT_ONCE;
        render(state);
      } else handlers.onEnd();
    },
    { root: scroll },
  );

  function render(next: InboxState): void {
    state = next;
    const { unread, items } = next;
    badge.textContent = unread > LARGEST_BADGE ? `${LARGEST_BADGE}+` : String(unread);
    badge.hidden = unread === 0;
    bell.setAttribute("aria-label", texts.bell(texts.label, unread));
    bell.setAttribute("aria-expanded", String(!panel.hidden));
    if (panel.hidden) return;
    renderRows(items.slice(0, limit));
    readAll.hidden = unread === 0;
    const [trouble, canRetry] = troubleOf(next);
    bannerText.textContent = trouble;
    banner.hidden = trouble === "";
    retry.hidden = !canRetry;
    note.hidden = items.length > 0 || next.hasMore || trouble !== "";
    if (next.isLoaded) note.replaceChildren(icon("bell"), texts.empty);
    else note.replaceChildren(texts.loading);
    // Observed anew, it reports again even if it has not left the view.
    watcher.unobserve(end);
    if (limit < items.length || (next.hasMore && !next.isLoading && !next.failure)) watcher.observe(end);
  }

  function renderRows(items: readonly InboxNotification[]): void {
    const wanted = new Set(items.map(({ id }) => id));
    for (const [id, row] of rows) if (!wanted.has(id)) removeRow(id, row);
    const wasEmpty = rows.size === 0;
    let isBeforeOld = true;
    items.forEach((item, index) => {
      let row = rows.get(item.id);
      if (row) {
        isBeforeOld = false;
        row.update(item);
      } else {
        row = addRow(item, isBeforeOld && !wasEmpty);
      }
      const there = list.children[index];
      if (there !== row.element) list.insertBefore(row.element, there ?? null);
    });
  }

  function addRow(item: InboxNotification, isNew: boolean): Row {
    const row = createRow({
      item,
      texts,
      language,
      isNew,
      onOpen: (event, link) => handlers.onOpen(item, event, link),
      onRead: () => handlers.onRead(item.id),
      onArchive: () => handlers.onArchive(item.id),
    });
    rows.set(item.id, row);
    if (!item.readAt) watcher.observe(row.element);
    return row;
  }

  function removeRow(id: string, { element }: Row): void {
    if (element.matches(":focus-within")) {
      const near = element.nextElementSibling ?? element.previousElementSibling;
      (near?.querySelector<HTMLElement>(".main") ?? panel).focus();
    }
    watcher.unobserve(element);
    element.remove();
    rows.delete(id);
  }

  function troubleOf({ failure, isUnsaved, connection }: InboxState): [text: string, canRetry: boolean] {
    if (!navigator.onLine) return [texts.offline, false];
    if (failure) return [failure === "unauthorized" ? texts.unauthorized : texts.failed, true];
    if (isUnsaved) return [texts.unsaved, false];
    return connection === "lost" ? [texts.lost, true] : ["", false];
  }

  function announce({ title, body }: InboxNotification): void {
    arrived++;
    // Rows above grow the list: what was drawn at its end stays drawn.
    if (!panel.hidden) limit++;
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      live.textContent = texts.arrived(arrived, title || body || texts.untitled);
      arrived = 0;
    }, ANNOUNCE_WAIT_MS);
  }

  /** Where there is room; on a small screen across it, but never over the bell, which closes it again. */
  function place(): void {
    const { top, bottom, right } = bell.getBoundingClientRect();
    panel.classList.toggle("start", right < PANEL_WIDTH);
    panel.classList.toggle("above", innerHeight - bottom < Math.min(ROOM, top));
    panel.style.setProperty("--_below", `${bottom + GAP}px`);
    panel.style.setProperty("--_above", `${innerHeight - top + GAP}px`);
  }

  function toggle(isOpen: boolean): void {
    if (!panel.hidden === isOpen) return;
    if (panel.matches(":focus-within")) bell.focus();
    panel.hidden = !isOpen;
    if (isOpen) {
      limit = DRAWN_AT_ONCE;
      place();
      // Drawn afresh, so that "5 minutes ago" is true.
      if (state) render(state);
      panel.focus();
    } else {
      for (const [id, row] of rows) removeRow(id, row);
      if (state) render(state);
    }
    handlers.onToggle(isOpen);
  }

  bell.addEventListener("click", () => toggle(panel.hidden === true));
  bell.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    toggle(true);
    panel.focus();
  });
  panel.addEventListener("keydown", (event) => {
    const stops = [...list.querySelectorAll<HTMLElement>(".main")];
    const at = stops.findIndex((stop) => stop.closest("li")?.matches(":focus-within"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1 }[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      toggle(false);
    } else if (to !== undefined && stops.length > 0) {
      event.preventDefault();
      stops[Math.max(0, Math.min(to, stops.length - 1))]?.focus();
    }
  });
  readAll.addEventListener("click", () => {
    panel.focus();
    handlers.onReadAll();
  });
  retry.addEventListener("click", () => {
    panel.focus();
    handlers.onRetry();
  });

  return { nodes: [bell, live, panel], render, announce, toggle };
}
