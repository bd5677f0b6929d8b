// <carillon-inbox url="https://…" user-id="u_17" token="…">: a bell, a badge and a panel with a user's notifications.
//
// Events, all of which bubble: `carillon-notification` when one arrives, `carillon-open` when one is chosen (cancel it
// to route yourself), `carillon-unauthorized` when the server refuses the token (set a new one).

import type { InboxNotification } from "./api.ts";
import { type Inbox, openInbox } from "./inbox.ts";
import { emptyInbox } from "./state.ts";
import { STYLE } from "./style.ts";
import { ENGLISH, type Texts } from "./texts.ts";
import { createView, type View } from "./view.ts";

// On a server there is no document. Importing must do no harm there; the element comes to life in the browser.
const Base: typeof HTMLElement = globalThis.HTMLElement ?? class {};

declare global {
  interface HTMLElementTagNameMap {
    "carillon-inbox": CarillonInbox;
  }
}

export class CarillonInbox extends Base {
  static observedAttributes = ["url", "user-id", "token", "category", "tenant", "label"];

  #inbox: Inbox | undefined;
  #view: View | undefined;
  #token: string | undefined;
  #texts: Partial<Texts> = {};
  #isDue = false;

  /** Short-lived, from your server. Absent: the session cookie counts. Set again, the connection goes on with it. */
  get token(): string | undefined {
    return this.#token ?? this.getAttribute("token") ?? undefined;
  }

  set token(token: string | undefined) {
    if (token === this.token) return;
    this.#token = token;
    this.#inbox?.refresh();
  }

  /** Words in another language; what is left out stays English. */
  get texts(): Partial<Texts> {
    return this.#texts;
  }

  set texts(texts: Partial<Texts>) {
    this.#texts = texts;
    this.#restart();
  }

  get unread(): number {
    return this.#inbox?.state.unread ?? 0;
  }

  open(): void {
    this.#view?.toggle(true);
  }

  close(): void {
    this.#view?.toggle(false);
  }

  /** Asks the server again; after a new session cookie, for instance. */
  refresh(): void {
    this.#inbox?.refresh();
  }

  connectedCallback(): void {
    this.#start();
    this.addEventListener("focusout", this.#onFocusOut);
    addEventListener("pagehide", this.#stop);
    addEventListener("pageshow", this.#onPageShow);
  }

  disconnectedCallback(): void {
    this.#stop();
    removeEventListener("pagehide", this.#stop);
    removeEventListener("pageshow", this.#onPageShow);
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (before === after) return;
    if (name === "token") {
      this.#token = undefined;
      this.#inbox?.refresh();
    } else this.#restart();
  }

  /** Frameworks set attributes one by one: start once, when they are through. */
  #restart(): void {
    if (this.#isDue || !this.#view) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (!this.isConnected) return;
      this.#stop();
      this.#start();
    });
  }

  #start(): void {
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const texts = { ...ENGLISH, ...this.#texts };
    texts.label = this.getAttribute("label") || texts.label;
    const language = this.closest<HTMLElement>("[lang]")?.lang || navigator.language;
    const view = createView(texts, language, {
      onToggle: (isOpen) => this.#watchOutside(isOpen),
      onOpen: (item, event, link) => this.#choose(item, event, link),
      onRead: (id) => void inbox?.read([id]),
      onArchive: (id) => void inbox?.archive([id]),
      onReadAll: () => void inbox?.readAll(),
      onRetry: () => inbox?.refresh(),
      onShown: (ids) => inbox?.shown(ids),
      onEnd: () => void inbox?.more(),
    });
    this.#view = view;
    root.replaceChildren(...view.nodes);

    const userId = this.getAttribute("user-id");
    let isDrawing = false;
    const draw = () => {
      if (isDrawing) return;
      isDrawing = true;
      // Many events come in one chunk; one drawing is enough. A frame would not come to a tab in the background.
      queueMicrotask(() => {
        isDrawing = false;
        if (inbox === this.#inbox) view.render(inbox?.state ?? emptyInbox());
      });
    };
    const inbox = userId
      ? openInbox({
          url: this.getAttribute("url") ?? "",
          userId,
          category: this.getAttribute("category") || undefined,
          tenant: this.getAttribute("tenant") ?? "",
          token: () => this.token,
          onChange: draw,
          onArrival: (notification) => {
            view.announce(notification);
            this.#tell("carillon-notification", notification);
          },
          onUnauthorized: () => this.#tell("carillon-unauthorized"),
        })
      : undefined;
    this.#inbox = inbox;
    draw();
  }

  #stop = (): void => {
    this.#watchOutside(false);
    this.#inbox?.close();
    this.#inbox = undefined;
  };

  /** Back from the browser's cache of pages: what was stopped on leaving starts again. */
  #onPageShow = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) this.#start();
  };

  #watchOutside(isOpen: boolean): void {
    document.removeEventListener("pointerdown", this.#onOutside);
    if (isOpen) document.addEventListener("pointerdown", this.#onOutside);
  }

  #onOutside = (event: Event): void => {
    if (!event.composedPath().includes(this)) this.close();
  };

  /** Whoever tabs on must not find the panel lying over the page. The focus leaves to nowhere when the window does. */
  #onFocusOut = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget !== null) this.close();
  };

  #choose(item: InboxNotification, event: Event, link: URL | undefined): void {
    if (!item.readAt) void this.#inbox?.read([item.id]);
    if (!this.#tell("carillon-open", { ...item, link: link?.href ?? null })) event.preventDefault();
    if (link) this.close();
  }

  #tell(name: string, detail?: InboxNotification): boolean {
    return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }));
  }
}

if (globalThis.customElements && !customElements.get("carillon-inbox")) {
  customElements.define("carillon-inbox", CarillonInbox);
}
