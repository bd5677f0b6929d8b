// The rows of the list, kept by id, so that neither focus nor scrolling is lost when something arrives.

import type { InboxNotification } from "./api.ts";
import type { Frame } from "./frame.ts";
import { createRow, type Row } from "./row.ts";
import type { Texts } from "./texts.ts";

export type RowHandlers = {
  onOpen: (item: InboxNotification, event: Event, link: URL | undefined) => void;
  onRead: (id: string) => void;
  onArchive: (id: string) => void;
};

export type Rows = { render(items: readonly InboxNotification[]): void; clear(): void };

type Options = {
  frame: Pick<Frame, "list" | "panel">;
  texts: Texts;
  language: string;
  handlers: RowHandlers;
  /** Tells when an unread row has been on the screen. */
  watcher: IntersectionObserver;
};

export function createRows({ frame: { list, panel }, texts, language, handlers, watcher }: Options): Rows {
  const rows = new Map<string, Row>();

  function add(item: InboxNotification, isNew: boolean): Row {
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

  function remove(id: string, { element }: Row): void {
    if (element.matches(":focus-within")) {
      const near = element.nextElementSibling ?? element.previousElementSibling;
      (near?.querySelector<HTMLElement>(".main") ?? panel).focus();
    }
    watcher.unobserve(element);
    element.remove();
    rows.delete(id);
  }

  return {
    render(items) {
      const wanted = new Set(items.map(({ id }) => id));
      for (const [id, row] of rows) if (!wanted.has(id)) remove(id, row);
      const wasEmpty = rows.size === 0;
      let isBeforeOld = true;
      items.forEach((item, index) => {
        let row = rows.get(item.id);
        if (row) {
          isBeforeOld = false;
          row.update(item);
        } else {
          row = add(item, isBeforeOld && !wasEmpty);
        }
        const there = list.children[index];
        if (there !== row.element) list.insertBefore(row.element, there ?? null);
      });
    },
    clear() {
      for (const [id, row] of rows) remove(id, row);
    },
  };
}
