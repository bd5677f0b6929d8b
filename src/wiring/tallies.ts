// The tallies, wired: whoever keeps house counts.

import { TALLIES } from "#record/tallies.ts";
import { type RunningTallier, startTallier } from "#roles/tallier.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import { lead, resign } from "#store/leadership.ts";
import type { Base } from "./base.ts";
import type { Member } from "./member.ts";

export function openTallies({ database, monotonic, facts }: Base, { name }: Member): RunningTallier {
  const { own } = database;
  return startTallier({
    round: () => foldTallies(own),
    lead: (ms) => lead(own, TALLIES, name, ms),
    resign: () => resign(own, TALLIES, name),
    onFailure: (error) => facts.timedFailed(TALLIES, error),
    monotonic,
  });
}
