// The part of the configuration that is about inboxes: who may read them from a page, and how many at once.

/** About 20 kB each, so half a gigabyte; a process with more would be long in coming back. */
export const MAX_STREAMS = 25_000;
/** A few devices with a few tabs each. */
export const DEFAULT_STREAMS_PER_USER = 20;

/** Origins exactly as browsers send them: a list, or the same with commas. No wildcard, since cookies may come along. */
export function readOrigins(given: unknown): readonly string[] | undefined {
  const list = typeof given === "string" ? given.split(",").map((one) => one.trim()) : given;
  return Array.isArray(list) && list.every(isOrigin) ? Object.freeze([...list]) : undefined;
}

const isOrigin = (one: unknown): boolean =>
  typeof one === "string" && /^https?:\/\//.test(one) && URL.canParse(one) && new URL(one).origin === one;
