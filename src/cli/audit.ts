// carillon audit: who did what, as lines for people.

import type { AuditFilters, AuditLine, Client } from "#client/client.ts";

/** Prints up to `count` lines, the newest first. */
export async function printAudit(
  client: Client,
  print: (line: string) => void,
  filters: AuditFilters,
  count: number,
): Promise<void> {
  let left = count;
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<Client["audit"]>> = await client.audit({
      ...filters,
      limit: Math.min(left, 200),
      ...(cursor !== null && { cursor }),
    });
    for (const line of page.data) print(lineOf(line));
    left -= page.data.length;
    cursor = page.nextCursor;
  } while (cursor !== null && left > 0);
}

function lineOf({ at, actor, action, object, change, address, requestId }: AuditLine): string {
  const who = `${actor.kind} ${actor.id}${actor.name === undefined ? "" : ` (${actor.name})`}`;
  const fields = Object.keys(change).length > 0 ? JSON.stringify(change) : "";
  const from = address === undefined ? "" : `from ${address}, request ${requestId}`;
  return [at, who, action, object, fields, from].filter((part) => part !== "").join("  ");
}
