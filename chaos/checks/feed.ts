// Facts can be followed: the feed tells what the record has, and whoever follows is told all of it.

import { type Check, type EventRow, type FactRow, groupBy, type Reading } from "../history.ts";

/** As docs/events.md words them: an attempt is told as what it led to, a bounce as a failure. */
export function typeOf({ type, to }: EventRow): string {
  if (type === "attempt") return to === "pending" ? "retrying" : to;
  return type === "bounced" ? "failed" : type;
}

export const followed: Check = {
  guarantee: "G21",
  promise:
    "the feed has each fact of the record once, in order per notification; a follower is told all after where it was",
  run({ tenants, notifications, events, feeds, readings }, report) {
    const names = new Map(tenants.map(({ id, name }) => [id, name]));
    const recorded = groupBy(events, ({ id }) => id);
    for (const [tenant, feed] of Object.entries(feeds)) {
      const told = groupBy(feed, ({ notificationId }) => notificationId);
      const its = notifications.filter((row) => names.get(row.tenant) === tenant);
      for (const { id } of its) {
        const later = (recorded.get(id) ?? []).filter(({ type }) => type !== "accepted");
        const facts = later.map((event) => `${typeOf(event)} ${id}:${event.number}`);
        compare(id, [`accepted ${id}:0`, ...facts], told.get(id) ?? [], report);
        told.delete(id);
      }
      for (const id of told.keys()) report("told of what is not there", `${id} to ${tenant}`);
    }
    const feedOf = ({ tenant, types }: Reading) =>
      (feeds[tenant] ?? []).filter(({ type }) => types?.includes(type) ?? true);
    for (const [follower, its] of groupBy(readings, (one) => one.follower)) {
      const last = feedOf(its[0] as Reading).at(-1)?.id;
      if (!its.some(({ facts }) => facts.at(-1)?.id === last))
        report("a follower is not told the end", `${follower}: ${last}`);
    }
    for (const reading of readings) {
      const { follower, after, facts, refusal } = reading;
      if (refusal !== undefined) report("a follower was refused", `${follower}: ${refusal}`);
      const feed = feedOf(reading);
      const from = after === undefined ? 0 : feed.findIndex(({ id }) => id === after) + 1;
      const wrong = facts.findIndex(({ id }, n) => feed[from + n]?.id !== id);
      if (wrong === -1) continue;
      const [was, is] = [facts[wrong]?.id, feed[from + wrong]?.id];
      report("a follower was told something else than what came next", `${follower}: ${was}, not ${is}`);
    }
  },
};

function compare(id: string, facts: string[], told: FactRow[], report: (rule: string, example: string) => void): void {
  const names = told.map((fact) => `${fact.type} ${fact.id}`);
  const missing = facts.find((fact) => !names.includes(fact));
  if (missing !== undefined) report("a fact was never told", missing);
  if (new Set(names).size < names.length) report("a fact is told twice", `${id}: ${names}`);
  const extra = names.find((name) => !facts.includes(name));
  if (extra !== undefined) report("told what did not happen", extra);
  if (missing === undefined && extra === undefined && facts.some((fact, n) => names[n] !== fact)) {
    report("facts of one notification are out of order", `${id}: ${names}`);
  }
}
