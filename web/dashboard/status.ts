// How something stands: a colour, and always a word beside it.

import { html, type VNode } from "./html.ts";

export type Tone = "good" | "bad" | "warn" | "info" | "quiet";

const TONES: { [word: string]: Tone } = {
  ...{ sent: "good", delivered: "good", done: "good", healthy: "good", closed: "good", alive: "good", active: "good" },
  ...{ succeeded: "good", accepted: "good", balanced: "good", current: "good", enabled: "good" },
  ...{ failed: "bad", open: "bad", dead: "bad", unhealthy: "bad", rejected: "bad", disabled: "bad", revoked: "bad" },
  ...{ ambiguous: "warn", suppressed: "warn", expired: "warn", paused: "warn", degraded: "warn", "half-open": "warn" },
  ...{ unavailable: "warn", missed: "warn", waiting: "warn", aborted: "warn", lost: "warn", bounce: "warn" },
  ...{ queued: "info", processing: "info", pending: "info", planned: "info", sending: "info", running: "info" },
  ...{
    applying: "info",
    counting: "info",
    ready: "info",
    moving: "info",
    aborting: "warn",
    failing: "bad",
    idle: "warn",
  },
};

export const toneOf = (word: string): Tone => TONES[word] ?? "quiet";

export function Status({ is, tone = toneOf(is), children }: { is: string; tone?: Tone; children?: string }): VNode {
  return html`<span class=${`status ${tone}`}>${children ?? is}</span>`;
}
