// The bell and its panel, drawn from the state. While the panel is closed only the badge is drawn.

import type { InboxNotification } from "./api.ts";
import { icon } from "./elements.ts";
import { createFrame, type Frame, place, rowAfter } from "./frame.ts";
import { createRows, type RowHandlers } from "./rows.ts";
import type { InboxState } from "./state.ts";
import type { Texts } from "./texts.ts";

export type ViewHandlers = RowHandlers & {
  onToggle: (isOpen: boolean) => void;
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

export function createView(texts: Texts, language: string, handlers: ViewHandlers): View {
  const frame = createFrame(texts);
  const { bell, live, panel, end } = frame;
  const announceSoon = createAnnouncer(live, texts);
  let state: InboxState | undefined;
  let limit = DRAWN_AT_ONCE;

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
    { root: frame.scroll },
  );
  const rows = createRows({ frame, texts, language, handlers, watcher });

  function render(next: InboxState): void {
    state = next;
    renderBell(next, frame, texts);
    if (panel.hidden) return;
    rows.render(next.items.slice(0, limit));
    renderNotes(next, frame, texts);
    // Observed anew, it reports again even if it has not left the view.
    watcher.unobserve(end);
    if (limit < next.items.length || (next.hasMore && !next.isLoading && !next.failure)) watcher.observe(end);
  }

  function announce(notification: InboxNotification): void {
    // Rows above grow the list: what was drawn at its end stays drawn.
    if (!panel.hidden) limit++;
    announceSoon(notification);
  }

  function toggle(isOpen: boolean): void {
    if (!panel.hidden === isOpen) return;
    if (panel.matches(":focus-within")) bell.focus();
    panel.hidden = !isOpen;
    if (isOpen) {
      limit = DRAWN_AT_ONCE;
      place(frame);
    } else rows.clear();
    // On opening drawn afresh, so that "5 minutes ago" is true.
    if (state) render(state);
    if (isOpen) panel.focus();
    handlers.onToggle(isOpen);
  }

  listen(frame, toggle, handlers);
  return { nodes: [bell, live, panel], render, announce, toggle };
}

function renderBell({ unread }: InboxState, { badge, bell, panel }: Frame, texts: Texts): void {
  badge.textContent = unread > LARGEST_BADGE ? `${LARGEST_BADGE}+` : String(unread);
  badge.hidden = unread === 0;
  bell.setAttribute("aria-label", texts.bell(texts.label, unread));
  bell.setAttribute("aria-expanded", String(!panel.hidden));
}

function renderNotes(state: InboxState, { readAll, bannerText, banner, retry, note }: Frame, texts: Texts): void {
  readAll.hidden = state.unread === 0;
  const [trouble, canRetry] = troubleOf(state, texts);
  bannerText.textContent = trouble;
  banner.hidden = trouble === "";
  retry.hidden = !canRetry;
  note.hidden = state.items.length > 0 || state.hasMore || trouble !== "";
  if (state.isLoaded) note.replaceChildren(icon("bell"), texts.empty);
  else note.replaceChildren(texts.loading);
}

function troubleOf({ failure, isUnsaved, connection }: InboxState, texts: Texts): [text: string, canRetry: boolean] {
  if (!navigator.onLine) return [texts.offline, false];
  if (failure) return [failure === "unauthorized" ? texts.unauthorized : texts.failed, true];
  if (isUnsaved) return [texts.unsaved, false];
  return connection === "lost" ? [texts.lost, true] : ["", false];
}

/** What arrives together is announced together. */
function createAnnouncer(live: HTMLElement, texts: Texts): (notification: InboxNotification) => void {
  let arrived = 0;
  let announcing: ReturnType<typeof setTimeout> | undefined;
  return ({ title, body }) => {
    arrived++;
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      live.textContent = texts.arrived(arrived, title || body || texts.untitled);
      arrived = 0;
    }, ANNOUNCE_WAIT_MS);
  };
}

function listen(frame: Frame, toggle: (isOpen: boolean) => void, handlers: ViewHandlers): void {
  const { bell, panel, readAll, retry } = frame;
  bell.addEventListener("click", () => toggle(panel.hidden === true));
  bell.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    toggle(true);
    panel.focus();
  });
  panel.addEventListener("keydown", (event) => {
    const row = rowAfter(event.key, frame);
    if (event.key === "Escape") {
      event.stopPropagation();
      toggle(false);
    } else if (row) {
      event.preventDefault();
      row.focus();
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
}
