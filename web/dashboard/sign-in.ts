// The way in: an API key, once. It is exchanged for a cookie that no script can read, and kept nowhere.

import { useState } from "preact/hooks";
import { html, type VNode } from "./html.ts";
import { Trouble } from "./parts.ts";
import { signIn, type Who } from "./session.ts";

export function SignIn({ onIn }: { onIn: (who: Who) => void }): VNode {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const key = String(new FormData(form).get("key") ?? "").trim();
    setBusy(true);
    try {
      onIn(await signIn(key));
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  }
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <p class="brand">Carillon</p>
      <h1>Sign in</h1>
      <p>With an API key of your tenant. What you see and may do here is what its scopes allow.</p>
      <label class="field"><span>API key</span>
        <input name="key" type="password" autocomplete="off" spellcheck="false" placeholder="ck_…" required autofocus /></label>
      <${Trouble} error=${error} />
      <button class="primary" disabled=${isBusy}>${isBusy ? "Signing in…" : "Sign in"}</button>
      <p class="hint">The key is exchanged for a session of twelve hours and not kept in the browser. The first start of Carillon
      prints one; <code>carillon key</code> or a page like this one, signed in as an administrator, makes more.</p>
    </form>
  </main>`;
}
