// /docs in a browser: finds what is looked for, writes this service's own address into the examples, copies them, and tries an operation out.
// The key that is typed in lives in this page's memory and goes nowhere but into the header of a request to this service.

type Field = { name: string; in: "path" | "query" | "header"; required: boolean };
type Operation = {
  parameters?: Field[];
  requestBody?: { content: { [type: string]: { example?: unknown } } };
  security: unknown[];
};
type Paths = { [path: string]: { [method: string]: Operation } };

const BASE = "http://127.0.0.1:8420";
const MOST_SHOWN = 200_000;
const all = <E extends Element>(selector: string, within: ParentNode = document): E[] => [
  ...within.querySelectorAll<E>(selector),
];

let key = "";
let document_: Promise<{ paths: Paths }> | undefined;
/** Asked for when somebody first tries something out. */
const readDocument = () => {
  document_ ??= fetch("/openapi.json").then((answer) => answer.json());
  return document_;
};

/** An article stays if it has every word. */
function search(text: string): void {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const article of all<HTMLElement>("article")) {
    const told = (article.dataset.words ?? "").toLowerCase();
    article.hidden = !words.every((word) => told.includes(word));
    if (!article.hidden) found++;
    const link = document.querySelector<HTMLElement>(`nav li:has(a[href="#${article.id}"])`);
    if (link) link.hidden = article.hidden;
  }
  for (const section of all<HTMLElement>("main section"))
    section.hidden = all("article", section).length > 0 && all("article:not([hidden])", section).length === 0;
  const count = document.querySelector("#found");
  if (count) count.textContent = words.length === 0 ? "" : found === 1 ? "1 operation" : `${found} operations`;
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  fields: { [field: string]: string } = {},
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [field, value] of Object.entries(fields)) made.setAttribute(field, value);
  made.append(...inside);
  return made;
}

/** The form of an operation, made when its details are first opened. */
async function makeForm(details: HTMLElement, article: HTMLElement): Promise<void> {
  const { method = "", path = "" } = article.dataset;
  const { paths } = await readDocument();
  const operation = paths[path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
  if (!operation || details.querySelector("form")) return;
  const form = element("form");
  for (const { name, in: place, required } of operation.parameters ?? []) {
    const input = element("input", {
      name: `${place}:${name}`,
      autocomplete: "off",
      ...(required && { required: "" }),
    });
    form.append(element("label", {}, `${name}${required ? " (required)" : ""} `, input));
  }
  const example = operation.requestBody?.content["application/json"]?.example;
  if (operation.requestBody) {
    const area = element("textarea", { name: "body", rows: "8", spellcheck: "false" });
    area.value = JSON.stringify(example, undefined, 2);
    form.append(element("label", {}, "body ", area));
  }
  const said = element("pre", { "aria-live": "polite", class: "said", tabindex: "0" });
  form.append(element("button", {}, `Send ${method}`));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void tryOut(form, said, method, path);
  });
  details.append(form, said);
}

async function tryOut(form: HTMLFormElement, said: HTMLElement, method: string, template: string): Promise<void> {
  const headers = new Headers(key === "" ? {} : { authorization: `Bearer ${key}` });
  const query = new URLSearchParams();
  let path = template;
  let body: string | undefined;
  for (const [name, value] of new FormData(form)) {
    const [place = "", field = ""] = name.split(":");
    const text = String(value);
    if (place === "body") body = text.trim() === "" ? undefined : text;
    else if (place === "path") path = path.replace(`:${field}`, encodeURIComponent(text));
    else if (text === "") continue;
    else if (place === "query") query.set(field, text);
    else headers.set(field, text);
  }
  if (body !== undefined) headers.set("content-type", "application/json");
  said.textContent = "…";
  try {
    // Without cookies: what is tried is what this key may do.
    const init: RequestInit = { method, headers, credentials: "omit", signal: AbortSignal.timeout(15_000) };
    const answer = await fetch(
      path + (query.size > 0 ? `?${query}` : ""),
      body === undefined ? init : { ...init, body },
    );
    said.textContent = `${answer.status} ${answer.statusText}\n`;
    said.textContent += shown(await readSome(answer), answer.headers.get("content-type") ?? "");
  } catch (error) {
    said.textContent += String(error);
  }
}

/** A stream goes on for minutes: what has come within two seconds will do. */
async function readSome(answer: Response): Promise<string> {
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer.text();
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const over = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 2_000));
  for (;;) {
    const next = await Promise.race([reader?.read(), over]);
    if (!next || next.done) break;
    text += decoder.decode(next.value, { stream: true });
  }
  void reader?.cancel();
  return text;
}

function shown(text: string, type: string): string {
  const most = text.slice(0, MOST_SHOWN);
  try {
    return type.includes("json") ? JSON.stringify(JSON.parse(text), undefined, 2).slice(0, MOST_SHOWN) : most;
  } catch {
    return most;
  }
}

for (const code of all<HTMLElement>("pre.example"))
  code.textContent = (code.textContent ?? "").replaceAll(BASE, location.origin);
for (const article of all<HTMLElement>("article")) {
  const details = article.querySelector<HTMLDetailsElement>("details.try");
  details?.addEventListener("toggle", () => {
    if (details.open) void makeForm(details, article);
  });
}
const box = document.querySelector<HTMLInputElement>("#search");
box?.addEventListener("input", () => search(box.value));
const keyBox = document.querySelector<HTMLInputElement>("#key");
keyBox?.addEventListener("input", () => {
  key = keyBox.value.trim();
});
addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  box?.focus();
});
for (const tools of all<HTMLElement>(".tools")) tools.hidden = false;
