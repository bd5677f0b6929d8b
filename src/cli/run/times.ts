// Instants and stretches of time, as people read them.

export const clockOf = (instant: string): string => instant.slice(11, 23);
export const dayOf = (instant: string): string => instant.slice(0, 10);

const UNITS: [ms: number, unit: string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

export function lasting(ms: number): string {
  const [size, unit] = UNITS.find(([least]) => ms >= least) ?? [1, "ms"];
  const count = ms / size;
  return `${count < 10 && unit !== "ms" ? Math.round(count * 10) / 10 : Math.round(count)} ${unit}`;
}

export const sizeOf = (bytes: number): string => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const n = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)));
  return `${n === 0 ? bytes : (bytes / 1_000 ** n).toFixed(1)} ${units[n]}`;
};
