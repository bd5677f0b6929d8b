// A picture of numbers over time. Its colours are the theme's; for those who cannot see it, it says its last values.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { html, type VNode } from "./html.ts";
import { compact } from "./words.ts";

export type Series = { label: string; colour: "accent" | "good" | "bad" | "warn" | "soft"; values: (number | null)[] };

const HEIGHT = 190;

export function Plot({
  label,
  atSeconds,
  series,
  unit = compact,
}: {
  label: string;
  /** Unix time of each point. */
  atSeconds: number[];
  series: Series[];
  unit?: (value: number) => string;
}): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [atSeconds, ...series.map(({ values }) => values)] as uPlot.AlignedData;
  const kind = series.map((one) => one.label).join();

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(element, series, unit), data, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      theme.removeEventListener("change", draw);
      plot.current?.destroy();
    };
  }, [kind]);
  useEffect(() => plot.current?.setData(data), [atSeconds, series]);

  const said = series.map(
    ({ label: name, values }) => `${name} ${unit(values.findLast((value) => value !== null) ?? 0)}`,
  );
  return html`<div class="plot" role="img" aria-label=${`${label}, at last: ${said.join(", ")}`} ref=${place}></div>`;
}

function optionsOf(element: HTMLElement, series: Series[], unit: (value: number) => string): uPlot.Options {
  // What a variable stands for depends on the theme; only an element knows.
  const probe = document.createElement("span");
  element.append(probe);
  const colourOf = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const stroke = colourOf("soft");
  const axis = { stroke, ticks: { show: false }, font: "11px system-ui", grid: { stroke: colourOf("line"), width: 1 } };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most * 1.1, 1)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70 },
      { ...axis, size: 52, values: (_plot, values) => values.map(unit) },
    ],
    series: [
      {},
      ...series.map(({ label, colour }) => ({
        label,
        stroke: colourOf(colour),
        width: 1.75,
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : unit(value)),
      })),
    ],
  };
  probe.remove();
  return options;
}
