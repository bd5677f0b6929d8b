// What the audit of a move found, in the log: loudly where something is amiss.

import type { Move } from "#queue/postgres/moves.ts";
import type { Logger } from "./log.ts";

export function createMoveFacts(log: Pick<Logger, "info" | "error">) {
  return {
    audited({ source, target, state, audit }: Move): void {
      const told = { source, target, state, ...audit };
      if (audit?.state === "unbalanced")
        log.error(told, "a move of ready work does not balance: what is amiss was lost or stands twice");
      else log.info(told, "a move of ready work was audited: accepted = ended + waiting for each engine");
    },
  };
}
