// The look. Everything a page may want to change is a variable; a constructed style sheet needs no exception in its
// Content-Security-Policy.

const DARK = `
  color-scheme: dark;
  --_accent: #7aa2ff; --_on-accent: #0b1020; --_bg: #1b1e25; --_text: #eceef3; --_muted: #a3a9b8;
  --_line: #ffffff1f; --_hover: #ffffff12; --_unread: #7aa2ff1a; --_badge: #ff6b6b; --_on-badge: #1b0505;
  --_shadow: 0 12px 32px #000a, 0 0 0 1px #ffffff1a;`;

export const STYLE = `
:host {
  color-scheme: light;
  --_accent: #2456d6; --_on-accent: #fff; --_bg: #fff; --_text: #171a21; --_muted: #5b6272;
  --_line: #0000001a; --_hover: #0000000d; --_unread: #2456d60f; --_badge: #c81e3a; --_on-badge: #fff;
  --_shadow: 0 12px 32px #0003, 0 0 0 1px #00000014;
  position: relative; display: inline-block; vertical-align: middle;
  font: var(--carillon-font, 14px/1.45 system-ui, sans-serif);
}
@media (prefers-color-scheme: dark) { :host(:not([theme="light"])) { ${DARK} } }
:host([theme="dark"]) { ${DARK} }
:host([hidden]), [hidden] { display: none !important; }
:host {
  --accent: var(--carillon-accent, var(--_accent)); --bg: var(--carillon-background, var(--_bg));
  --text: var(--carillon-text, var(--_text)); --muted: var(--carillon-muted, var(--_muted));
  --line: var(--carillon-line, var(--_line)); --radius: var(--carillon-radius, 12px);
}
* { box-sizing: border-box; }
:where(button, a) { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-align: start; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
svg { display: block; width: 20px; height: 20px; fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; }
.bell { position: relative; padding: 10px; border-radius: 50%; color: var(--carillon-bell, var(--text)); }
.bell:hover, .bell[aria-expanded="true"] { background: var(--_hover); }
.badge {
  position: absolute; inset-block-start: 0; inset-inline-end: 0; min-width: 18px; padding: 0 5px; border-radius: 9px;
  background: var(--carillon-badge, var(--_badge)); color: var(--_on-badge); font-size: 11px; font-weight: 600; line-height: 18px; text-align: center;
}
.panel {
  position: absolute; z-index: var(--carillon-z-index, 1000); inset-block-start: calc(100% + 8px); inset-inline-end: 0;
  display: flex; flex-direction: column; width: min(380px, calc(100vw - 16px)); max-height: min(560px, 80vh);
  overflow: hidden; border-radius: var(--radius); background: var(--bg); color: var(--text); box-shadow: var(--_shadow);
  animation: appear .14s ease-out;
}
.panel:focus-visible { outline-offset: 0; }
.panel.start { inset-inline: 0 auto; }
.panel.above { inset-block: auto calc(100% + 8px); }
header { display: flex; align-items: center; justify-content: space-between; gap: 12px; padding: 12px 16px; border-block-end: 1px solid var(--line); }
h2 { margin: 0; font-size: 16px; font-weight: 650; }
.text { color: var(--accent); padding: 4px 6px; margin: -4px -6px; border-radius: 6px; font-size: 13px; }
.text:hover { text-decoration: underline; }
.banner { display: flex; justify-content: space-between; gap: 12px; padding: 8px 16px; background: var(--_hover); color: var(--muted); font-size: 13px; }
.scroll { overflow-y: auto; overscroll-behavior: contain; flex: 1; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; align-items: flex-start; border-block-end: 1px solid var(--line); }
li:last-child { border: 0; }
li.unread { background: var(--_unread); }
li:hover { background: var(--_hover); }
li.new { animation: arrive .5s ease-out; }
.main { flex: 1; min-width: 0; display: block; padding: 12px 0 12px 34px; position: relative; text-decoration: none; border-radius: 4px; }
.main:dir(rtl) { padding: 12px 34px 12px 0; }
.unread .main::before { content: ""; position: absolute; inset: 18px auto auto 14px; width: 8px; height: 8px; border-radius: 50%; background: var(--accent); }
.unread .main:dir(rtl)::before { inset: 18px 14px auto auto; }
.title, .body { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; overflow-wrap: anywhere; }
.title { font-weight: 500; }
.unread .title { font-weight: 650; }
.body { -webkit-line-clamp: 4; white-space: pre-line; color: var(--muted); }
.whole .title, .whole .body { -webkit-line-clamp: none; }
time { display: block; margin-block-start: 2px; color: var(--muted); font-size: 12px; }
a.main:hover .title { text-decoration: underline; }
.actions { display: flex; padding: 8px 8px 0 4px; color: var(--muted); }
.actions button { padding: 6px; border-radius: 6px; }
.actions button:hover { background: var(--_hover); color: var(--text); }
.actions svg { width: 16px; height: 16px; }
.note { margin: 0; padding: 40px 16px; text-align: center; color: var(--muted); }
.note svg { width: 32px; height: 32px; margin: 0 auto 8px; opacity: .6; }
.end { height: 1px; }
.quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@keyframes appear { from { opacity: 0; transform: translateY(-4px); } }
@keyframes arrive { from { background: var(--accent); opacity: .4; } }
@media (prefers-reduced-motion: reduce) { .panel, li.new { animation: none; } }
@media (forced-colors: active) { .panel { border: 1px solid; } .unread .main::before { background: Highlight; } }
@media (max-width: 480px) {
  .panel, .panel.start { position: fixed; inset: var(--_below) 8px auto; width: auto; max-height: calc(100dvh - var(--_below) - 8px); }
  .panel.above { inset: auto 8px var(--_above); max-height: calc(100dvh - var(--_above) - 8px); }
}
`;
