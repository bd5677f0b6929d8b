// carillon dead …: what failed for good.

import type { DeadLetter, DeadLetterFilters, DeadLetterGroup } from "#client/client.ts";
import type { Run } from "../command.ts";
import { definedOf, listed, readAll } from "./lines.ts";

export const listDead: Run = async ({ options, flags }, world) => {
  const { deadLetters } = await world.client();
  const { channel, priority, provider, user, since, until, count = "50" } = options;
  const filters = definedOf({ channel, priority, provider, userId: user, since, until }) as DeadLetterFilters;
  if (flags.has("by-cause")) {
    const groups = await deadLetters.groups({ ...filters, limit: Math.min(Number(count), 100) });
    return { json: groups, text: groups.data.map(groupLine) };
  }
  const letters = await readAll((page) => deadLetters.list({ ...filters, ...page }), Number(count));
  return listed(letters, lineOf);
};

function lineOf({ failedAt, notificationId, channel, priority, attempts, provider = "-", error = "" }: DeadLetter) {
  const tries = `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
  return [failedAt, notificationId, channel.padEnd(7), priority.padEnd(6), tries, provider, error].join("  ").trimEnd();
}

function groupLine({
  count,
  channel,
  provider = "-",
  cause = "(no error)",
  newestAt,
  examples,
}: DeadLetterGroup): string {
  return [String(count).padStart(7), channel.padEnd(7), provider, cause, `last ${newestAt}`, examples[0] ?? ""].join(
    "  ",
  );
}
