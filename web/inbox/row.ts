// One notification in the list.

import type { InboxNotification } from "./api.ts";
import { ago, create, icon } from "./elements.ts";
import { safeLink } from "./safe-link.ts";
import type { Texts } from "./texts.ts";

export type Row = { element: HTMLLIElement; main: HTMLElement; update(item: InboxNotification): void };

export type RowOptions = {
  item: InboxNotification;
  texts: Texts;
  language: string;
  isNew: boolean;
  onOpen: (event: Event, link: URL | undefined) => void;
  onRead: () => void;
  onArchive: () => void;
};

export function createRow({ item, texts, language, isNew, onOpen, onRead, onArchive }: RowOptions): Row {
  const link = safeLink(item.link, document.baseURI);
  const main: HTMLElement = link ? create("a", { href: link.href }) : create("button", { type: "button" });
  main.className = "main";
  if (main instanceof HTMLAnchorElement && link?.origin !== location.origin) {
    main.target = "_blank";
    main.rel = "noopener noreferrer";
  }
  const mark = create("span", { class: "quiet" });
  const title = create("span", { class: "title", part: "title" });
  const body = create("span", { class: "body", part: "body" });
  const time = create("time");
  main.append(mark, title, body, time);
  const read = create("button", { type: "button", class: "read", title: texts.read }, icon("check"));
  const archive = create("button", { type: "button", class: "archive", title: texts.archive }, icon("archive"));
  const element = create("li", { part: "item" }, main, create("div", { class: "actions" }, read, archive));
  element.dataset.id = item.id;
  element.classList.toggle("new", isNew);

  main.addEventListener("click", (event) => {
    // A long text is cut short; where there is nowhere to go, choosing it shows the whole.
    if (!link) element.classList.toggle("whole");
    onOpen(event, link);
  });
  main.addEventListener("keydown", (event) => {
    // A link takes Enter only; beside buttons that look the same, Space must do as well.
    if (event.key !== " " || !link) return;
    event.preventDefault();
    main.click();
  });
  read.addEventListener("click", onRead);
  archive.addEventListener("click", onArchive);

  function update(now: InboxNotification): void {
    const name = now.title || (now.body ? "" : texts.untitled);
    const isUnread = !now.readAt;
    mark.textContent = isUnread ? `${texts.unread}: ` : "";
    title.textContent = name;
    title.hidden = name === "";
    body.textContent = now.body ?? "";
    body.hidden = !now.body;
    time.dateTime = now.createdAt;
    time.textContent = ago(now.createdAt, Date.now(), language);
    read.setAttribute("aria-label", `${texts.read}: ${name || now.body}`);
    archive.setAttribute("aria-label", `${texts.archive}: ${name || now.body}`);
    element.classList.toggle("unread", isUnread);
    // The button that was just pressed goes away: the focus must not go with it.
    if (!isUnread && read.matches(":focus")) main.focus();
    read.hidden = !isUnread;
  }
  update(item);
  return { element, main, update };
}
