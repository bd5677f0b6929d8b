// carillon events: what happened, a line of JSON for each fact.

import type { FactFilters, FactType } from "#client/client.ts";
import { EXIT, type Run } from "../command.ts";
import { definedOf } from "./lines.ts";

/** A service that does not answer is asked a few times, and not for ever. */
export const MOST_FAILURES = 5;

/** The first so many; or what happens, as it happens. */
export const printEvents: Run = async ({ options, flags }, world) => {
  const { events } = await world.client();
  const { types, since, after: from, notification, count = "100" } = options;
  const filters: FactFilters = {
    ...definedOf({ since, after: from, notification }),
    // Words that the server does not know it refuses itself.
    ...(types && { types: types.split(",") as FactType[] }),
  };
  const print = (fact: unknown) => world.print(JSON.stringify(fact));
  if (flags.has("follow")) {
    for await (const fact of events.follow(filters, { maxAttempts: MOST_FAILURES })) print(fact);
    return EXIT.done;
  }
  let { after } = filters;
  for (let left = Number(count); left > 0; ) {
    const page = await events.list({ ...filters, ...(after && { after }), limit: Math.min(left, 1_000) });
    for (const fact of page.data) print(fact);
    if (page.isAtEnd) break;
    left -= page.data.length;
    after = page.next;
  }
  return EXIT.done;
};
