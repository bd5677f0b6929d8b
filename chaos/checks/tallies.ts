// What was counted is what happened: the tallies equal a count of the whole record.

import type { Check, History, TallyRow } from "../history.ts";

type Kind = Omit<TallyRow, "count">;

const keyOf = ({ tenant, channel, event, was, becomes, outcome }: Kind): string =>
  `${[tenant, channel, event, was || "-", becomes || "-", outcome || "-"].join(" ")}`;

/** As the tallies have it: an acceptance leads from nowhere to nowhere. */
function happened({ notifications, events }: History): Kind[] {
  const rows = new Map(notifications.map((row) => [row.id, row]));
  const accepted = notifications.map(({ tenant, request: { channel } }) => ({
    ...{ tenant, channel, event: "accepted", was: "", becomes: "", outcome: "" },
  }));
  const later = events.flatMap(({ id, type, from, to, outcome }) => {
    const row = rows.get(id);
    if (!row || type === "accepted" || type === "purged") return [];
    const { tenant, request } = row;
    return [{ tenant, channel: request.channel, event: type, was: from ?? "", becomes: to, outcome: outcome ?? "" }];
  });
  return [...accepted, ...later];
}

export const counted: Check = {
  guarantee: "G25",
  promise: "each fact is in the tallies once, whoever was killed while counting",
  run(history, report) {
    const left = new Map<string, number>();
    const add = (kind: Kind, count: number) => left.set(keyOf(kind), (left.get(keyOf(kind)) ?? 0) + count);
    for (const kind of happened(history)) add(kind, 1);
    for (const { count, ...kind } of history.tallies) add(kind, -count);
    for (const [key, count] of left) {
      if (count > 0) report("happened, and was not counted", `${count}: ${key}`);
      if (count < 0) report("counted more often than it happened", `${-count}: ${key}`);
    }
  },
};
