// What the audit log says of a change: what was done, to what, and which fields are other than before.
//
// No secret gets here: whoever writes a line names the fields. Objects that are named after people are kept under pseudonyms.

import { createHash } from "node:crypto";

export const ACTIONS = [
  ...["key.create", "key.revoke", "session.begin", "session.end", "tenant.create", "tenant.weigh"],
  ...["channel.pause", "channel.resume", "provider.pause", "provider.resume", "tenant.pause", "tenant.resume"],
  "lane.resume",
  ...["account.keep", "account.forget"],
  ...["template.keep", "template.activate", "template.delete"],
  ...["schedule.keep", "schedule.pause", "schedule.resume", "schedule.delete"],
  ...["reminder.keep", "reminder.delete", "scope.keep", "scope.delete"],
  ...["notification.cancel", "notification.reschedule", "notification.retry", "dead-letters.requeue"],
  ...["plan.create", "plan.apply", "plan.continue", "plan.abort", "plan.finish"],
  ...["endpoint.create", "endpoint.change", "endpoint.pause", "endpoint.resume", "endpoint.rotate", "endpoint.delete"],
  ...["endpoint.disable", "endpoint.replay", "callback-dead-letters.requeue"],
  ...["source.pause", "source.resume", "sink.pause", "sink.resume", "sink.replay", "sink.forget"],
  ...["queue.move", "queue.move-abort", "queue.audit"],
  ...["week.drop", "audit.drop", "archive.write", "archive.restore"],
  ...["user.delete", "user.deleted", "user.export"],
  ...["suppression.keep", "suppression.lift", "dev-messages.clear", "dev-message.delete", "clock.move", "clock.reset"],
  ...["faults.inject", "faults.clear"],
] as const;
export type Action = (typeof ACTIONS)[number];

/** Kinds of objects whose names tell who somebody is: a user id, an address. */
export const PEOPLE: ReadonlySet<string> = new Set(["user", "suppression"]);

export type Fields = { [name: string]: unknown };

export type Deed = {
  action: Action;
  /** `kind:name` in the log; the kind alone where all of a kind are meant. */
  object: { kind: string; name?: string };
  /** Whose it is, where it is not the actor's: a tenant's number. */
  tenant?: number;
  /** What the fields were and what they are. Those that stayed are left out, and what is long is cut. */
  before?: Fields;
  after?: Fields;
  /** A user whom the change is about, besides its object. */
  about?: string;
};

export type Change = { before?: Fields; after?: Fields };

/** A field's JSON may be so long; of a longer one its beginning and a digest are kept. */
const MOST_CHARACTERS = 1_000;
const BEGINNING = 200;
const MOST_FIELDS = 20;

/** What is other than before. Undefined where both are known and nothing is: then nothing was done. */
export function changeOf({ before, after }: Change): Change | undefined {
  if (!before || !after) return { ...(before && { before: bounded(before) }), ...(after && { after: bounded(after) }) };
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => textOf(before[name]) !== textOf(after[name]));
  if (changed.length === 0) return undefined;
  const only = (fields: Fields) => bounded(Object.fromEntries(changed.map((name) => [name, fields[name]])));
  return { before: only(before), after: only(after) };
}

/** What something says, without saying it. */
export const digestOf = (value: unknown): string =>
  `sha256:${createHash("sha256").update(textOf(value)).digest("hex").slice(0, 32)}`;

const textOf = (value: unknown): string => JSON.stringify(value) ?? "";

const bounded = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined && value !== null)
      .slice(0, MOST_FIELDS)
      .map(([name, value]) => [name, cut(value)]),
  );

function cut(value: unknown): unknown {
  const text = textOf(value);
  if (text.length <= MOST_CHARACTERS) return value;
  return { characters: text.length, digest: digestOf(value), begins: text.slice(0, BEGINNING) };
}
