// Numbers over time, as lines. Drawn as elements, so that the theme's colours are its own, and the values of a minute are said where
// one points. For those who cannot see it, it says its last values.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html, type VNode } from "./html.ts";

export type Series = { label: string; tone: "accent" | "good" | "bad" | "warn"; values: (number | null)[] };
type Unit = (value: number) => string;
type Box = { width: number; most: number; points: number };

const HEIGHT = 176;
const TOP = 8;
const BOTTOM = 22;
const LEFT = 46;
const RIGHT = 8;
const TICKS = 4;
/** So many of the axis' words fit side by side. */
const WORD_WIDTH = 80;

const xOf = ({ width, points }: Box, at: number): number =>
  LEFT + (at / Math.max(points - 1, 1)) * Math.max(width - LEFT - RIGHT, 1);
const yOf = ({ most }: Box, value: number): number => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);

/** The next of 1, 2, 5, 10, 20 … that `TICKS` of them reach to. */
function stepFor(most: number): number {
  const rough = Math.max(most, 1) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? rough;
}

/** What is not known interrupts the line; a point alone is a dot. */
function pathOf(box: Box, values: readonly (number | null)[]): string {
  return values
    .map((value, at) => {
      if (value === null) return "";
      const isJoined = at > 0 && values[at - 1] !== null;
      const place = `${xOf(box, at).toFixed(1)} ${yOf(box, value).toFixed(1)}`;
      return isJoined ? `L${place}` : `M${place}h0`;
    })
    .join("");
}

const timeOf = (seconds: number): string => new Date(seconds * 1000).toTimeString().slice(0, 5);

export function Plot(props: { label: string; atSeconds: number[]; series: Series[]; unit: Unit }): VNode {
  const { label, atSeconds, series, unit } = props;
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [pointed, point] = useState<number>();
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    const resized = new ResizeObserver(() => setWidth(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);

  const step = stepFor(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const box = { width, most: step * TICKS, points: atSeconds.length };
  const last = atSeconds.length - 1;
  const shown = Math.min(pointed ?? last, last);
  const follow = ({ offsetX }: PointerEvent) => {
    const share = (offsetX - LEFT) / Math.max(width - LEFT - RIGHT, 1);
    point(Math.min(Math.max(Math.round(share * last), 0), last));
  };
  const said = series.map(({ label: name, values }) => `${name} ${unit(values.at(-1) ?? 0)}`).join(", ");
  return html`<div class="plot" ref=${place}>
    <svg height=${HEIGHT} width=${width} role="img" aria-label=${`${label}, at last: ${said}`} onPointerMove=${follow} onPointerLeave=${() => point(undefined)}>
      <${Axes} box=${box} step=${step} atSeconds=${atSeconds} unit=${unit} />
      ${pointed !== undefined && html`<line class="pointed" x1=${xOf(box, shown)} x2=${xOf(box, shown)} y1=${TOP} y2=${HEIGHT - BOTTOM} />`}
      ${series.map(({ tone, values }) => html`<path class=${`line-${tone}`} d=${pathOf(box, values)} />`)}
    </svg>
    <p class="legend" aria-hidden="true"><span>${timeOf(atSeconds[shown] ?? 0)}</span>
      ${series.map(({ label: name, tone, values }) => html`<span class=${`key-${tone}`}>${name} ${known(values[shown], unit)}</span>`)}</p>
  </div>`;
}

const known = (value: number | null | undefined, unit: Unit): string =>
  value === null || value === undefined ? "–" : unit(value);

function Axes({ box, step, atSeconds, unit }: { box: Box; step: number; atSeconds: number[]; unit: Unit }): VNode {
  const ticks = Array.from({ length: TICKS + 1 }, (_, n) => n * step);
  const every = Math.max(Math.ceil((atSeconds.length * WORD_WIDTH) / Math.max(box.width, 1) / 5) * 5, 5);
  return html`<g>${ticks.map(
    (value) => html`<line class="lane" x1=${LEFT} x2=${box.width - RIGHT} y1=${yOf(box, value)} y2=${yOf(box, value)} />
      <text x=${LEFT - 6} y=${yOf(box, value) + 4} text-anchor="end">${unit(value)}</text>`,
  )}
  ${atSeconds.map((at, n) => n % every === 0 && n > 0 && xOf(box, n) < box.width - 2 * RIGHT && html`<text x=${xOf(box, n)} y=${HEIGHT - 6} text-anchor="middle">${timeOf(at)}</text>`)}</g>`;
}
