// Shortcuts: g and a letter to go somewhere, j and k along a list, / to the search, ? for help. None while one writes.

import { useEffect } from "preact/hooks";
import { go, linkTo } from "./route.ts";

export type Destination = { page: string; shortcut: string };

const CHORD_MS = 1_500;
const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

export function useShortcuts(destinations: readonly Destination[], onHelp: () => void): void {
  useEffect(() => {
    let chordUntil = 0;
    function press(event: KeyboardEvent): void {
      const { key, target, ctrlKey, metaKey, altKey } = event;
      if (ctrlKey || metaKey || altKey || isWriting(target) || document.querySelector("dialog[open]")) return;
      if (Date.now() < chordUntil) {
        chordUntil = 0;
        const to = destinations.find(({ shortcut }) => shortcut === key);
        if (!to) return;
        event.preventDefault();
        go(linkTo(to.page));
        return;
      }
      if (key === "g") chordUntil = Date.now() + CHORD_MS;
      else if (key === "?") onHelp();
      else if (key === "j" || key === "k") along(key === "j" ? 1 : -1);
      else if (key === "/") {
        const search = document.querySelector<HTMLInputElement>("[data-search]");
        if (!search) return;
        event.preventDefault();
        // What one types takes the place of what was there.
        search.select();
      }
    }
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [destinations, onHelp]);
}

/** To the link of the next row, or the one before. */
function along(step: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("[data-row]")].flatMap((row) => {
    const link = row.querySelector<HTMLElement>("a, button");
    return link ? [link] : [];
  });
  const at = links.findIndex((link) => link.closest("[data-row]")?.contains(document.activeElement));
  const next = at === -1 ? 0 : Math.min(Math.max(at + step, 0), links.length - 1);
  links[next]?.focus();
}
