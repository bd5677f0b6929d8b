// Nothing is changed by one click: what is about to happen, and to how many, is asked first, and what came of it is said.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type ComponentChildren, html, type VNode } from "./html.ts";
import { Trouble } from "./parts.ts";

export type Question = {
  title: string;
  /** What it means, with the count. */
  text: ComponentChildren;
  /** The button, a verb. */
  verb: string;
  isDangerous?: boolean;
  /** A reason is asked for, and handed over. */
  needsReason?: boolean;
  /** What was done, in a few words. */
  act: (reason: string) => Promise<string | { title: string; show: ComponentChildren }>;
};

let put: (question: Question) => void = () => {};
let say: (text: string) => void = () => {};

export const confirm = (question: Question): void => put(question);
export const tell = (text: string): void => say(text);

const TOLD_MS = 6_000;

type Shown = { question: Question; done?: { title: string; show: ComponentChildren } };

export function Confirmation(): VNode {
  const [shown, setShown] = useState<Shown>();
  const [told, setTold] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");

  useLayoutEffect(() => {
    put = (question) => {
      setError(undefined);
      setReason("");
      setShown({ question });
    };
    say = setTold;
  }, []);
  useEffect(() => {
    if (shown && !dialog.current?.open) dialog.current?.showModal();
  }, [shown]);
  useEffect(() => {
    if (told === "") return;
    const timer = setTimeout(() => setTold(""), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);

  async function act({ question }: Shown): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      const done = await question.act(reason);
      if (typeof done === "string") {
        dialog.current?.close();
        setTold(done);
      } else setShown({ question, done });
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  }

  const close = () => dialog.current?.close();
  return html`
    <dialog ref=${dialog} class="confirm" aria-labelledby="confirm-title" onClose=${() => setShown(undefined)}>
      ${shown && html`<${Asking} ...${{ shown, isBusy, error, reason, setReason, close }} onAct=${() => act(shown)} />`}
    </dialog>
    <div class="told" role="status">${told !== "" && html`<p>${told}</p>`}</div>`;
}

type AskingProps = {
  shown: Shown;
  isBusy: boolean;
  error: unknown;
  reason: string;
  setReason: (reason: string) => void;
  close: () => void;
  onAct: () => void;
};

function Asking({ shown: { question, done }, isBusy, error, reason, setReason, close, onAct }: AskingProps): VNode {
  const { title, text, verb, isDangerous, needsReason } = question;
  if (done) {
    return html`<h2 id="confirm-title">${done.title}</h2><div>${done.show}</div>
      <footer><button type="button" class="primary" onClick=${close}>Close</button></footer>`;
  }
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isBusy) onAct();
  };
  return html`<form onSubmit=${submit}>
    <h2 id="confirm-title">${title}</h2>
    <div class="confirm-text">${text}</div>
    ${
      needsReason &&
      html`<label class="field"><span>Reason, for whoever looks later</span>
      <input required maxlength="500" value=${reason} onInput=${(event: Event) => setReason((event.target as HTMLInputElement).value)} /></label>`
    }
    <${Trouble} error=${error} />
    <footer>
      <button type="button" onClick=${close}>Cancel</button>
      <button class=${isDangerous ? "danger" : "primary"} disabled=${isBusy}>${isBusy ? "Working…" : verb}</button>
    </footer>
  </form>`;
}
