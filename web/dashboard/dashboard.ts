// The dashboard: a client of the public API, like any other.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { whenSignedOut } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { Trouble } from "./parts.ts";
import { findWho, type Who } from "./session.ts";
import { Shell } from "./shell.ts";
import { SignIn } from "./sign-in.ts";

function App(): VNode {
  const [who, setWho] = useState<Who | "nobody" | undefined>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    whenSignedOut(() => setWho("nobody"));
    findWho().then((found) => setWho(found ?? "nobody"), setError);
  }, []);
  useEffect(() => {
    if (who === "nobody") document.title = "Sign in · Carillon";
  }, [who]);
  if (error !== undefined) return html`<main class="sign-in"><h1>Carillon</h1><${Trouble} error=${error} /></main>`;
  if (who === undefined) return html`<main class="sign-in" aria-busy="true"><h1 class="hidden">Carillon</h1></main>`;
  if (who === "nobody") return html`<${SignIn} onIn=${setWho} />`;
  return html`<${Shell} who=${who} onOut=${() => setWho("nobody")} />`;
}

const place = document.getElementById("app");
if (place) {
  place.replaceChildren();
  render(html`<${App} />`, place);
}
