// A notification's life as a picture: a line, a point for each thing that happened, a bar for each attempt. Long waits are drawn
// shorter than they were, so that what is close together can still be told apart; their length is written above them.

import { html, type VNode } from "./html.ts";
import { toneOf } from "./status.ts";
import { duration } from "./words.ts";

export type Happened = {
  type: string;
  at: string;
  from?: string;
  to: string;
  provider?: string;
  outcome?: string;
  error?: string;
};
type Tried = { number: number; startedAt?: string; endedAt?: string; outcome?: string };

const WIDTH = 1000;
const EDGE = 50;
const LINE = 46;
const BARS = 66;
/** Points nearer than this share their words. */
const APART = 60;

export function Timeline({ events, attempts }: { events: Happened[]; attempts: Tried[] }): VNode | null {
  if (events.length === 0) return null;
  const xOf = scaleOf([
    ...events.map(({ at }) => Date.parse(at)),
    ...attempts.flatMap(({ startedAt, endedAt }) =>
      [startedAt, endedAt].flatMap((at) => (at === undefined ? [] : [Date.parse(at)])),
    ),
  ]);
  const points = events.map((event) => ({ ...event, x: xOf(Date.parse(event.at)) }));
  const said = events.map(({ type, to }) => `${type}, ${to}`).join("; then ");
  return html`<svg class="timeline" viewBox=${`0 0 ${WIDTH} 90`} role="img" aria-label=${`Timeline: ${said}`}>
    <line class="lane" x1=${EDGE} x2=${WIDTH - EDGE} y1=${LINE} y2=${LINE} stroke-width="2" />
    ${points.slice(1).map((point, n) => gapOf(points[n] as typeof point, point))}
    ${attempts.map((attempt) => barOf(attempt, xOf))}
    ${points.map(
      ({ x, to, type }, n) => html`<g>
        <circle cx=${x} cy=${LINE} r="6" class=${`dot dot-${toneOf(to)}`}><title>${type}</title></circle>
        ${isAlone(points, n) && html`<text x=${x} y=${LINE - 28} text-anchor="middle">${type}</text>`}
      </g>`,
    )}
  </svg>`;
}

/** The last of those that are close together has the word. */
const isAlone = (points: { x: number }[], n: number): boolean =>
  (points[n + 1]?.x ?? Number.POSITIVE_INFINITY) - (points[n]?.x ?? 0) > APART || n === points.length - 1;

function gapOf(from: { x: number; at: string }, to: { x: number; at: string }): VNode | null {
  const ms = Date.parse(to.at) - Date.parse(from.at);
  if (to.x - from.x < APART) return null;
  return html`<text x=${(from.x + to.x) / 2} y=${LINE - 10} text-anchor="middle">${duration(ms)}</text>`;
}

function barOf({ number, startedAt, endedAt, outcome = "" }: Tried, xOf: (ms: number) => number): VNode | null {
  if (startedAt === undefined || endedAt === undefined) return null;
  const from = xOf(Date.parse(startedAt));
  const width = Math.max(xOf(Date.parse(endedAt)) - from, 4);
  return html`<rect x=${from} y=${BARS} width=${width} height="8" rx="3" class=${`dot-${toneOf(outcome)}`}><title>attempt ${number}: ${outcome}</title></rect>`;
}

/** Each stretch between two instants is as long as the logarithm of its duration. */
function scaleOf(instants: number[]): (ms: number) => number {
  const sorted = [...new Set(instants)].sort((a, b) => a - b);
  const lengths = sorted.map((at, n) => Math.log10(1 + (at - (sorted[n - 1] ?? at))));
  const whole = lengths.reduce((sum, length) => sum + length, 0) || 1;
  let reached = 0;
  const places = new Map(
    sorted.map((at, n) => {
      reached += lengths[n] ?? 0;
      return [at, EDGE + (reached / whole) * (WIDTH - 2 * EDGE)];
    }),
  );
  return (ms) => places.get(ms) ?? EDGE;
}
