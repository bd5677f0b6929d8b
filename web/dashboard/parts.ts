// What pages are made of.

import { Refused } from "./api.ts";
import { type ComponentChildren, html, type VNode } from "./html.ts";
import { ago, exact } from "./words.ts";

type Children = { children?: ComponentChildren };

export function When({ at }: { at: string | undefined }): VNode {
  return at === undefined ? html`<span>–</span>` : html`<time datetime=${at} title=${exact(at)}>${ago(at)}</time>`;
}

export function Card({ title, aside, children }: Children & { title?: string; aside?: ComponentChildren }): VNode {
  const head = (title !== undefined || aside !== undefined) && html`<header><h2>${title}</h2>${aside}</header>`;
  return html`<section class="card">${head}${children}</section>`;
}

/** Says what to do next. */
export function Empty({ title, children }: Children & { title: string }): VNode {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
}

export function Trouble({ error }: { error: unknown }): VNode | null {
  if (error === undefined) return null;
  const code = error instanceof Refused ? error.code : "FAILED";
  const text = error instanceof Error ? error.message : String(error);
  const faults = error instanceof Refused ? error.faults : [];
  return html`<div class="trouble" role="alert"><strong>${code}</strong> ${text}
    ${faults.length > 0 && html`<ul>${faults.map(({ path, message }) => html`<li><code>${path || "/"}</code> ${message}</li>`)}</ul>`}
  </div>`;
}

/** What is not there yet, or went wrong; otherwise what it is made into. */
export function Read<Value>({
  of: { value, error },
  children,
}: {
  of: { value: Value | undefined; error: unknown };
  children: (value: Value) => ComponentChildren;
}): VNode {
  return html`<${Trouble} error=${error} />${
    value === undefined ? error === undefined && html`<p class="loading" role="status">Loading…</p>` : children(value)
  }`;
}

export type Fact = [term: string, what: ComponentChildren];

export function Facts({ of }: { of: (Fact | false | undefined)[] }): VNode {
  const shown = of.filter((fact): fact is Fact => fact !== undefined && fact !== false);
  return html`<dl class="facts">${shown.map(([term, what]) => html`<div><dt>${term}</dt><dd>${what}</dd></div>`)}</dl>`;
}

export function Code({ of, label }: { of: unknown; label?: string }): VNode {
  const text = typeof of === "string" ? of : JSON.stringify(of, undefined, 2);
  // Scrolls, so the keyboard must get there.
  return html`<pre tabindex="0" role="region" aria-label=${label ?? "Text"}>${text}</pre>`;
}

type PickProps = {
  label: string;
  value: string;
  /** What each stands for, and what it is called. */
  options: [value: string, name: string][];
  onPick: (value: string) => void;
};

export function Pick({ label, value, options, onPick }: PickProps): VNode {
  return html`<label class="field"><span>${label}</span>
    <select value=${value} onChange=${(event: Event) => onPick((event.target as HTMLSelectElement).value)}>
      ${options.map(([option, name]) => html`<option value=${option} selected=${option === value}>${name}</option>`)}
    </select></label>`;
}

type SelectProps = Omit<PickProps, "options"> & { options: readonly string[]; any?: string };

/** Or none of them. */
export function Select({ options, any = "any", ...rest }: SelectProps): VNode {
  const all = [["", any], ...options.map((option) => [option, option])];
  return html`<${Pick} ...${rest} options=${all} />`;
}
