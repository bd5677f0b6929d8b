// carillon events: what happened, a line of JSON for each fact.

import type { Client, FactFilters, FactType } from "#client/client.ts";

export const EVENT_USAGE =
  "  carillon events [--types a,b] [--since INSTANT] [--after POSITION] [--notification ID] [--count N | --follow]";

/** Words that the server does not know it refuses itself. */
type Said = Omit<FactFilters, "types"> & { types?: readonly string[] };

/** A service that does not answer is asked a few times, and not for ever. */
const MOST_FAILURES = 5;

/** The first so many; or what happens, as it happens. */
export async function printEvents(
  { events }: Pick<Client, "events">,
  print: (line: string) => void,
  said: Said,
  most: number | "follow",
): Promise<void> {
  const filters = said as Omit<Said, "types"> & { types?: readonly FactType[] };
  if (most === "follow") {
    for await (const fact of events.follow(filters, { maxAttempts: MOST_FAILURES })) print(JSON.stringify(fact));
    return;
  }
  let { after } = filters;
  for (let left = most; left > 0; ) {
    const page = await events.list({ ...filters, ...(after && { after }), limit: Math.min(left, 1_000) });
    for (const fact of page.data) print(JSON.stringify(fact));
    if (page.isAtEnd) return;
    left -= page.data.length;
    after = page.next;
  }
}
