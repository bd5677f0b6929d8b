// A bar for what takes long: one line that is written over, on a terminal only.

import type { Progress } from "./command.ts";

const REDRAW_MS = 100;
const CLEAR = `\r${String.fromCharCode(27)}[K`;

/** Never longer than a line has room for. */
export function barOf(
  title: string,
  done: number,
  total: number,
  told: (count: number) => string,
  columns: number,
): string {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const text = ` ${String(Math.floor(share * 100)).padStart(3)} %  ${told(done)} of ${told(total)}`;
  const room = Math.max(0, Math.min(40, columns - title.length - text.length - 4));
  const full = Math.round(share * room);
  const bar = room < 5 ? "" : ` [${"#".repeat(full)}${"-".repeat(room - full)}]`;
  return `${title}${bar}${text}`.slice(0, Math.max(0, columns - 1));
}

export function showProgress(
  output: NodeJS.WriteStream | undefined,
  title: string,
  told: (count: number) => string,
): Progress {
  if (!output?.isTTY) return { at: () => {}, end: () => {} };
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    at(done, total) {
      if (performance.now() - drawnAt < REDRAW_MS && done < total) return;
      drawnAt = performance.now();
      output.write(CLEAR + barOf(title, done, total, told, output.columns || 80));
    },
    end: () => void output.write(CLEAR),
  };
}
