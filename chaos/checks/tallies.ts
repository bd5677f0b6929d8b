// What was counted is what happened, and what it cost: the tallies equal a count of the whole record.

import type { Check, History, TallyRow } from "../history.ts";

type Kind = Omit<TallyRow, "count" | "cost">;
type Happened = { kind: Kind; cost: number };

/** Both sides add up decimals in another order. */
const LEAST_COST = 1e-6;

const keyOf = ({ tenant, channel, event, was, becomes, outcome }: Kind): string =>
  `${[tenant, channel, event, was || "-", becomes || "-", outcome || "-"].join(" ")}`;

/** As the tallies have it: an acceptance leads from nowhere to nowhere. */
function happened({ notifications, events }: History): Happened[] {
  const rows = new Map(notifications.map((row) => [row.id, row]));
  const accepted = notifications.map(({ tenant, request: { channel } }) => ({
    ...{ kind: { tenant, channel, event: "accepted", was: "", becomes: "", outcome: "" }, cost: 0 },
  }));
  const later = events.flatMap(({ id, type, from, to, outcome, cost }) => {
    const row = rows.get(id);
    if (!row || type === "accepted" || type === "purged") return [];
    const { tenant, request } = row;
    const kind = {
      tenant,
      channel: request.channel,
      event: type,
      was: from ?? "",
      becomes: to,
      outcome: outcome ?? "",
    };
    return [{ kind, cost: cost ?? 0 }];
  });
  return [...accepted, ...later];
}

export const counted: Check = {
  guarantee: "G25",
  promise: "each fact is in the tallies once, with what it cost, whoever was killed while counting",
  run(history, report) {
    const left = new Map<string, { count: number; cost: number }>();
    const add = (kind: Kind, count: number, cost: number) => {
      const sum = left.get(keyOf(kind)) ?? { count: 0, cost: 0 };
      left.set(keyOf(kind), { count: sum.count + count, cost: sum.cost + cost });
    };
    for (const { kind, cost } of happened(history)) add(kind, 1, cost);
    for (const { count, cost, ...kind } of history.tallies) add(kind, -count, -cost);
    for (const [key, { count, cost }] of left) {
      if (count > 0) report("happened, and was not counted", `${count}: ${key}`);
      if (count < 0) report("counted more often than it happened", `${-count}: ${key}`);
      if (Math.abs(cost) > LEAST_COST) report("counted with another cost than it had", `${cost}: ${key}`);
    }
  },
};
