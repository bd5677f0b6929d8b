// carillon audit: who did what, as lines for people.

import type { AuditFilters, AuditLine } from "#client/client.ts";
import type { Run } from "../command.ts";
import { definedOf, listed, readAll } from "./lines.ts";

/** The newest first. */
export const listAudit: Run = async ({ options }, world) => {
  const { count = "50", since, until, actor, action, object } = options;
  const client = await world.client();
  const filters: AuditFilters = definedOf({ since, until, actor, action: action as AuditLine["action"], object });
  const lines = await readAll((page) => client.audit({ ...filters, ...page }), Number(count));
  return listed(lines, lineOf);
};

function lineOf({ at, actor, action, object, change, address, requestId }: AuditLine): string {
  const who = `${actor.kind} ${actor.id}${actor.name === undefined ? "" : ` (${actor.name})`}`;
  const fields = Object.keys(change).length > 0 ? JSON.stringify(change) : "";
  const from = address === undefined ? "" : `from ${address}, request ${requestId}`;
  return [at, who, action, object, fields, from].filter((part) => part !== "").join("  ");
}
