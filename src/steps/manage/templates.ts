// Templates: stored version by version, activated, deleted. What this process has made of a tenant's is forgotten at once; other
// processes follow within seconds.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { activateVersion, deleteTemplate, putVersion, type StoredTemplate } from "#store/templates.ts";
import type { Templates } from "#templates/load.ts";
import {
  faultsOfContent,
  type TemplateChannel,
  type TemplateContent,
  type TemplateError,
  told,
} from "#templates/template.ts";

export type TemplateWorld = { pool: pg.Pool; templates: Templates };

export type TemplateRequest = {
  channel: TemplateChannel;
  name: string;
  content: TemplateContent;
  engine?: "liquid";
  strict?: boolean;
  /** The first version of a template is active in any case. */
  activate?: boolean;
};

/** The next version, or the latest as it is when it says the same already. Only what renders is stored. */
export async function putTemplate(
  { pool, templates }: TemplateWorld,
  actor: KeyActor,
  id: string,
  { channel, name, content, engine = "liquid", strict = false, activate = true }: TemplateRequest,
): Promise<StoredTemplate | Problem> {
  const faults = faultsOfContent(channel, content);
  if (faults.length > 0) return invalid(faults);
  const { tenant } = actor;
  const errors = await templates.check(tenant, channel, content);
  if (errors.length > 0) return unrendered(errors);
  const stored = await inTransaction(pool, async (tx) => {
    const put = await putVersion(tx, tenant, { id, channel, name, content, engine, strict }, activate);
    if (!put) return undefined;
    const before = put.before && { before: shown(put.before) };
    await writeAudit(tx, actor, { action: "template.keep", object: objectOf(id), ...before, after: shown(put.stored) });
    return put.stored;
  });
  if (!stored) return invalid([{ path: "/channel", message: `must stay what it is for the template ${id}` }]);
  templates.forget(tenant);
  return stored;
}

/** Undefined when there is no such version. */
export async function activateTemplate(
  { pool, templates }: TemplateWorld,
  actor: KeyActor,
  id: string,
  version: number,
): Promise<StoredTemplate | undefined> {
  const active = await inTransaction(pool, async (tx) => {
    const activated = await activateVersion(tx, actor.tenant, id, version);
    if (!activated) return undefined;
    const [before, after] = [{ activeVersion: activated.activeBefore }, { activeVersion: activated.activeVersion }];
    await writeAudit(tx, actor, { action: "template.activate", object: objectOf(id), before, after });
    return activated;
  });
  if (active) templates.forget(actor.tenant);
  return active;
}

/** With all its versions. False when there is none of that name. */
export async function removeTemplate(
  { pool, templates }: TemplateWorld,
  actor: KeyActor,
  id: string,
): Promise<boolean> {
  const versions = await inTransaction(pool, async (tx) => {
    const versions = await deleteTemplate(tx, actor.tenant, id);
    if (versions > 0)
      await writeAudit(tx, actor, { action: "template.delete", object: objectOf(id), before: { versions } });
    return versions;
  });
  if (versions > 0) templates.forget(actor.tenant);
  return versions > 0;
}

const objectOf = (id: string) => ({ kind: "template", name: id });

const shown = ({ version, activeVersion, channel, name, content, engine, strict }: StoredTemplate) => ({
  ...{ version, activeVersion, channel, name, content, engine, strict },
});

/** What is wrong with the template is the caller's to mend; a renderer that is busy is not. */
export function unrendered(errors: (TemplateError & { path: string })[]): Problem {
  const busy = errors.find(({ why }) => why === "busy");
  if (busy) return new Problem("OVERLOADED", busy.message, { retryAfterSeconds: 1 });
  return invalid(errors.map((error) => ({ path: error.path, message: `does not render: ${told(error)}` })));
}
