// A range of time as tallies give it: moved outwards to where the finest grain begins that is still kept, and put together from the coarsest that
// fit. A month is some days, with some hours and minutes at its ends.

import { GRAIN_MS, GRAINS, type Grain, KEPT_DAYS } from "./statistics.ts";

export type Span = { grain: Grain; since: Date; until: Date };
/** `since` and `until` are what is counted, from the first span's beginning to the last one's end. */
export type Spans = { since: Date; until: Date; spans: Span[] };

const DAY_MS = GRAIN_MS.day;
/** What is about to be dropped may be gone already: clocks differ. */
const SPARE_MS = GRAIN_MS.hour;

const floorTo = (at: number, grain: Grain): number => Math.floor(at / GRAIN_MS[grain]) * GRAIN_MS[grain];
const ceilTo = (at: number, grain: Grain): number => Math.ceil(at / GRAIN_MS[grain]) * GRAIN_MS[grain];

export function spansOf({ since, until }: { since: Date; until: Date }, now: Date): Spans {
  const isKept = (grain: Grain, at: number) => at >= now.getTime() - KEPT_DAYS[grain] * DAY_MS + SPARE_MS;
  // Nothing has happened yet that is further ahead than clocks differ.
  const last = Math.min(until.getTime(), now.getTime() + DAY_MS);
  const head = GRAINS.find((grain) => isKept(grain, floorTo(since.getTime(), grain))) ?? "day";
  // From where the next coarser one ends.
  const tail = GRAINS.find((grain, n) => isKept(grain, floorTo(last, GRAINS[n + 1] ?? grain))) ?? "day";
  const end = ceilTo(last, tail);
  const start = floorTo(since.getTime(), head);
  const spans: Span[] = [];
  for (let at = start; at < end; ) {
    const fits = (grain: Grain) => at % GRAIN_MS[grain] === 0 && at + GRAIN_MS[grain] <= end;
    const grain = GRAINS.findLast(fits) ?? "minute";
    const coarser = GRAINS[GRAINS.indexOf(grain) + 1];
    const to = Math.min(floorTo(end, grain), coarser ? floorTo(at, coarser) + GRAIN_MS[coarser] : end);
    spans.push({ grain, since: new Date(at), until: new Date(to) });
    at = to;
  }
  return { since: new Date(start), until: new Date(Math.max(end, start)), spans };
}
