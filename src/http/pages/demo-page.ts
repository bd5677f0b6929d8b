// /demo, in development: send to an inbox and watch it arrive. The page holds no key; the developer types one in, and
// it lives in the page's memory until the page is closed.

import { type Route, route } from "#http/core/route.ts";
import { browserScript } from "./bundle.ts";

export function demoRoutes({ isDevelopment }: { isDevelopment: boolean }): Route[] {
  if (!isDevelopment) return [];
  const file = (path: string, summary: string, mediaType: string, body: () => Promise<string> | string): Route =>
    route({
      method: "GET",
      path,
      summary,
      tag: "Development",
      answers: { 200: { description: summary, mediaType } },
      handle: async () => ({ status: 200, body: await body(), headers: { "content-type": mediaType } }),
    });
  return [
    file("/demo", "Try the inbox", "text/html; charset=utf-8", () => PAGE),
    file("/demo.css", "Its style", "text/css; charset=utf-8", () => STYLE),
    file("/demo.js", "Its script", "text/javascript; charset=utf-8", () => browserScript("demo")),
  ];
}

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carillon inbox demo</title><link rel="stylesheet" href="/demo.css">
<script type="module" src="/inbox.js"></script><script type="module" src="/demo.js"></script></head>
<body>
<main>
<h1>Inbox demo</h1>
<p>Type in an API key with the scope <code>send</code>. It stays in this page's memory. Then send, and watch both bells.</p>
<form id="connect">
<label>API key <input name="key" type="password" autocomplete="off" required></label>
<label>User <input name="userId" value="demo" autocomplete="off" required></label>
<button>Connect</button>
</form>
<output id="said" aria-live="polite"></output>
<form id="send">
<label>Title <input name="title" value="Your order has shipped" required></label>
<label>Body <textarea name="body" rows="2">It will be with you on Tuesday.</textarea></label>
<div class="row"><label>Link <input name="link" placeholder="/orders/17"></label>
<label>Category <input name="category" placeholder="orders"></label></div>
<label>How many <input name="count" type="number" min="1" max="100" value="1"></label>
<button disabled>Send</button>
</form>
</main>
<section class="light" aria-label="Light"><h2>Light</h2><div class="place" data-theme="light"></div></section>
<section class="dark" aria-label="Dark"><h2>Dark</h2><div class="place" data-theme="dark"></div></section>
</body></html>
`;

const STYLE = `:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; grid-template-columns: 22rem 1fr 1fr; font: 15px/1.5 system-ui, sans-serif; color: #171a21; background: #f4f5f8; }
main { padding: 1.5rem; background: #fff; border-right: 1px solid #0002; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1rem; margin: 0; }
form { display: grid; gap: .6rem; margin: .8rem 0; padding-top: .8rem; border-top: 1px solid #0002; }
label { display: grid; gap: .15rem; font-size: 13px; color: #5b6272; }
input, textarea { font: inherit; font-size: 15px; padding: .4rem .5rem; border: 1px solid #0003; border-radius: 6px; color: #171a21; background: #fff; width: 100%; }
button { font: inherit; font-weight: 600; padding: .5rem; border: 0; border-radius: 6px; background: #2456d6; color: #fff; cursor: pointer; }
button:disabled { opacity: .4; cursor: default; }
output { display: block; min-height: 1.5em; overflow-wrap: anywhere; }
.row { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; }
section { position: sticky; top: 0; height: 100vh; padding: 1.5rem; display: flex; justify-content: space-between; align-items: flex-start; }
.place { min-width: 40px; min-height: 40px; } .dark { background: #101218; color: #eceef3; }
@media (max-width: 70rem) { body { grid-template-columns: 1fr; grid-template-rows: auto; } section { position: static; height: auto; min-height: 30rem; } }
`;
