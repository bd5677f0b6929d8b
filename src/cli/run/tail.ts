// carillon tail: what happens, as it happens, a line for each fact.

import type { Fact, FactFilters, FactType } from "#client/client.ts";
import { type Call, EXIT, type Run } from "../command.ts";
import { colourOf, type Paint, paintOf } from "../paint.ts";
import { MOST_FAILURES } from "./events.ts";
import { definedOf } from "./lines.ts";
import { clockOf, lasting } from "./times.ts";

export const tail: Run = async ({ options }, world) => {
  const { events } = await world.client();
  const { types, since, notification, count } = options;
  const filters: FactFilters = {
    ...definedOf({ since, notification }),
    ...(types && { types: types.split(",") as FactType[] }),
  };
  const paint = paintOf(world.screen);
  let left = count === undefined ? Number.POSITIVE_INFINITY : Number(count);
  for await (const fact of events.follow(filters, { maxAttempts: MOST_FAILURES })) {
    if (!isWanted(fact, options)) continue;
    world.tell(fact, factLine(fact, paint));
    left -= 1;
    if (left <= 0) break;
  }
  return EXIT.done;
};

/** What the service does not choose by itself. */
function isWanted(fact: Fact, { channel, status, user, provider }: Call["options"]): boolean {
  return (
    (channel === undefined || fact.channel === channel) &&
    (status === undefined || fact.to === status) &&
    (user === undefined || fact.userId === user) &&
    (provider === undefined || fact.provider === provider)
  );
}

export function factLine(fact: Fact, paint: Paint): string {
  const { at, type, channel = "-", priority = "-", notificationId, userId, attempt, provider, latencyMs, error } = fact;
  const by = provider === undefined ? "" : `by ${provider}`;
  const tries = attempt === undefined || attempt < 2 ? "" : `attempt ${attempt}`;
  const took = latencyMs === undefined ? "" : `in ${lasting(latencyMs)}`;
  const cells = [
    paint("faint", clockOf(at)),
    paint(colourOf(type), type.padEnd(11)),
    channel.padEnd(7),
    priority.padEnd(6),
    notificationId,
    ...[userId ?? "", by, tries, took, error === undefined ? "" : paint("red", error)].filter((cell) => cell !== ""),
  ];
  return cells.join("  ");
}
