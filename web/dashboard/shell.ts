// What is around every page: the menu, the way out, help, and what was just done.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Confirmation } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useShortcuts } from "./keyboard.ts";
import { PAGES, type PageEntry } from "./pages.ts";
import { Empty } from "./parts.ts";
import { linkTo, usePlace } from "./route.ts";
import { may, signOut, type Who, WhoContext } from "./session.ts";

export function Shell({ who, onOut }: { who: Who; onOut: () => void }): VNode {
  const place = usePlace();
  const pages = useMemo(() => PAGES.filter(({ needs }) => may(who, needs)), [who]);
  const entry = PAGES.find(({ page }) => page === place.page);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const help = useRef<HTMLDialogElement>(null);
  const openHelp = useCallback(() => help.current?.showModal(), []);
  useShortcuts(pages, openHelp);

  const title = entry?.title ?? "Not found";
  const where = [place.page, ...place.rest].join("/");
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Carillon`;
    setMenuOpen(false);
    // Who listens hears where they are; the first time the page says so itself.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    scrollTo(0, 0);
  }, [where]);

  const toMain = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  const leave = () =>
    void signOut()
      .catch(() => {})
      .then(onOut);
  return html`<${WhoContext.Provider} value=${who}>
    <a class="skip" href="#main" onClick=${toMain}>To the content</a>
    <div class=${`shell ${isMenuOpen ? "menu-open" : ""}`}>
      <header class="side">
        <div class="top"><a class="brand" href="#/">Carillon</a>
          <button type="button" class="menu-button" aria-expanded=${isMenuOpen} aria-controls="menu" onClick=${() => setMenuOpen(!isMenuOpen)}>Menu</button></div>
        <div id="menu" class="menu">
          <${Menu} pages=${pages} current=${place.page} />
          <div class="who">
            <p><strong>${who.key.name}</strong><br />${who.tenant} · ${who.scopes.join(", ")}</p>
            <button type="button" class="plain" onClick=${openHelp}>Keyboard <kbd>?</kbd></button>
            <button type="button" class="plain" onClick=${leave}>Sign out</button>
          </div>
        </div>
      </header>
      <main id="main" tabindex="-1" ref=${main}>
        ${entry ? shown(entry, who, place) : html`<h1>Not found</h1><${Empty} title="There is no such page">Choose one of the menu.<//>`}
      </main>
    </div>
    <${Help} dialog=${help} pages=${pages} />
    <${Confirmation} />
  <//>`;
}

function shown({ View, title, needs }: PageEntry, who: Who, place: ReturnType<typeof usePlace>): VNode {
  if (may(who, needs)) return html`<${View} place=${place} />`;
  return html`<h1>${title}</h1><${Empty} title="This key may not see that">It needs the scope ${needs}. Sign in with another key.<//>`;
}

function Menu({ pages, current }: { pages: readonly PageEntry[]; current: string }): VNode {
  const groups = [...new Set(pages.map(({ group }) => group))];
  return html`<nav aria-label="Pages">${groups.map(
    (group) => html`<div class="group"><p id=${`group-${group}`}>${group}</p><ul aria-labelledby=${`group-${group}`}>
      ${pages
        .filter((entry) => entry.group === group)
        .map(
          ({
            page,
            title,
            shortcut,
          }) => html`<li><a href=${linkTo(page)} aria-current=${page === current ? "page" : undefined}>
          ${title}<kbd aria-hidden="true">g ${shortcut}</kbd></a></li>`,
        )}
    </ul></div>`,
  )}</nav>`;
}

const KEYS: [string, string][] = [
  ["j k", "next and previous row of a list"],
  ["Enter", "open it"],
  ["/", "to the search"],
  ["?", "this help"],
  ["Esc", "close"],
];

function Help({
  dialog,
  pages,
}: {
  dialog: { current: HTMLDialogElement | null };
  pages: readonly PageEntry[];
}): VNode {
  const rows = [...pages.map(({ title, shortcut }) => [`g ${shortcut}`, title] as [string, string]), ...KEYS];
  return html`<dialog ref=${dialog} aria-labelledby="help-title"><h2 id="help-title">Keyboard</h2>
    <dl class="keys">${rows.map(([keys, what]) => html`<div><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl>
    <footer><button type="button" class="primary" onClick=${() => dialog.current?.close()}>Close</button></footer>
  </dialog>`;
}
