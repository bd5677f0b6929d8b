// How /docs looks.

export const STYLE = `:root { color-scheme: light dark; --line: #8884; --soft: #8881; --strong: #2563eb; }
* { box-sizing: border-box; }
body { margin: 0; display: flex; font: 15px/1.5 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; width: 20rem; flex: none; padding: 1rem; border-right: 1px solid var(--line); }
nav ul { list-style: none; padding: 0; font-size: 13px; } nav li { margin: .25rem 0; overflow-wrap: anywhere; }
nav b { display: inline-block; width: 3.6rem; font-size: 11px; }
main { padding: 1rem 2rem 6rem; max-width: 62rem; min-width: 0; }
a { color: inherit; text-decoration: none; } a:hover { color: var(--strong); text-decoration: underline; }
article { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem 1rem; margin: 1rem 0; }
article:target, tr:target { outline: 2px solid var(--strong); }
h3 { font-size: 1.05rem; display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; } h4 { margin: 1rem 0 .3rem; }
h3 b { color: #fff; background: #475569; border-radius: 4px; padding: .1rem .5rem; font-size: 12px; }
.tools { display: grid; gap: .3rem; margin: .6rem 0; } .tools[hidden], [hidden] { display: none; }
input, textarea { font: inherit; font-size: 14px; padding: .35rem .5rem; border: 1px solid var(--line); border-radius: 6px; background: transparent; color: inherit; width: 100%; }
textarea { font: 13px/1.4 ui-monospace, monospace; } label { font-size: 12px; display: grid; gap: .15rem; }
form { display: grid; gap: .5rem; margin: .5rem 0; } button { font: inherit; padding: .35rem .8rem; border: 0; border-radius: 6px; background: var(--strong); color: #fff; cursor: pointer; justify-self: start; }
pre { font: 13px/1.45 ui-monospace, monospace; background: var(--soft); border-radius: 6px; padding: .7rem; overflow: auto; max-height: 26rem; margin: .4rem 0; } .said:empty { display: none; }
.GET { background: #2563eb; } .POST { background: #15803d; } .DELETE { background: #b91c1c; }
.scope { margin-left: auto; font-weight: normal; font-size: 12px; opacity: .7; }
.required { color: #b91c1c; font-size: 11px; }
code { font: 13px ui-monospace, monospace; background: var(--soft); border-radius: 3px; padding: 0 .2rem; }
p, li, td, h3 code { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px; } td, th { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; font-size: 13px; opacity: .7; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; width: auto; height: auto; border: 0; } main { padding: 1rem; } }
`;
