// Why somebody did not get something, in one call: the notification, what happened to it, and whatever may hold it up now, with what to do.

import { Type } from "typebox";
import { Instant } from "#domain/notification.ts";
import { Id, strictOneOf } from "#http/core/schemas.ts";
import { findSuppressed } from "#store/suppressions.ts";
import { quoted } from "./quoted.ts";
import type { Arguments, Told, Tool, ToolWorld } from "./tool.ts";
import { type Findings, verdictOf } from "./verdict.ts";

const LOOKED_AT = 20;
const TIMELINE = 12;
const ARRIVED = ["sent", "delivered"];

type Row = { [field: string]: unknown };
const rows = (value: unknown): Row[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

export const why: Tool = {
  name: "why_not_delivered",
  title: "Why did somebody not get it?",
  description:
    "Answers in one call why a notification did not arrive: its status, what happened to it, the last error, whether the address is suppressed, whether " +
    "its channel, provider or tenant is paused, whether a breaker is open, whether any worker takes it, and what to do. Give one of notificationId, " +
    "userId or address (an e-mail address, phone number, Slack channel or URL). Of a user or an address it looks at the newest that did not arrive.",
  scope: "read",
  input: strictOneOf(["notificationId", "userId", "address"], {
    notificationId: Type.Optional(Id),
    userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    address: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
    since: Type.Optional(Instant),
  }),
  look: explainWhy,
};

async function explainWhy(given: Arguments, world: ToolWorld): Promise<Told> {
  const { id, others } = await pick(given, world);
  const address = text(given.address);
  if (id === undefined) {
    const why = address === "" ? undefined : await suppressionOf([address], world);
    const about = why ? ` The address is suppressed (${why}): nothing is sent to it until that is lifted.` : "";
    const told = `Nothing was ever asked to be sent there, as far back as was looked.${about} Check the user id or address, or the sender.`;
    return { text: told, data: { found: false, suppressed: why ?? false } };
  }
  const detail = await world.inside("GET /v1/notifications/:id", { params: { id } });
  const findings = await findingsOf(detail, world);
  const { sentence, advice } = verdictOf(findings);
  const events = rows(detail.events).slice(-TIMELINE).map(lineOf);
  const data = { found: true, ...findings, verdict: sentence, advice, timeline: events, alsoFound: others };
  return { text: [sentence, ...advice.map((one) => `- ${one}`), "Timeline:", ...events].join("\n"), data };
}

/** Of several the newest that did not arrive, or else the newest. */
async function pick({ notificationId, userId, address, since }: Arguments, { inside }: ToolWorld) {
  if (typeof notificationId === "string") return { id: notificationId, others: [] };
  const query = {
    ...(userId === undefined ? { recipient: address } : { userId }),
    ...(since !== undefined && { since }),
    limit: LOOKED_AT,
  };
  const found = rows((await inside("GET /v1/notifications", { query })).data);
  const chosen = found.find(({ status }) => !ARRIVED.includes(text(status))) ?? found[0];
  const others = found
    .filter((one) => one !== chosen)
    .map(({ notificationId: id, status, channel, enqueuedAt }) => ({
      notificationId: id,
      status,
      channel,
      enqueuedAt,
    }));
  return { id: chosen && text(chosen.notificationId), others };
}

async function findingsOf(detail: Row, world: ToolWorld): Promise<Findings> {
  const { inside } = world;
  const channel = text(detail.channel);
  const recipient = (detail.recipient ?? {}) as Row;
  const addresses = [recipient.email, recipient.phone].map(text).filter((one) => one !== "");
  const attempts = rows(detail.attempts);
  const last = attempts.at(-1);
  const providers = rows((await inside("GET /v1/providers")).data).filter(({ routes }) =>
    rows(routes).includes(channel as never),
  );
  const names = providers.map(({ name }) => text(name));
  const paused = rows((await inside("GET /v1/pauses")).data).filter(({ kind, name }) =>
    kind === "channel" ? name === channel : kind === "provider" ? names.includes(text(name)) : true,
  );
  const untaken = rows((await inside("GET /v1/queue")).untaken).filter(
    (flow) => flow.priority === detail.priority && (flow.channel === undefined || flow.channel === channel),
  );
  return {
    notificationId: text(detail.notificationId),
    status: text(detail.status),
    channel,
    priority: text(detail.priority),
    enqueuedAt: text(detail.enqueuedAt),
    ...(detail.scheduledFor !== undefined && { scheduledFor: text(detail.scheduledFor) }),
    attempts: attempts.length,
    ...(text(last?.error) !== "" && { lastError: quoted(text(last?.error)) }),
    ...(text(last?.outcome) !== "" && { lastOutcome: text(last?.outcome) }),
    suppressed: (await suppressionOf(addresses, world)) ?? false,
    paused: paused.map(({ kind, name, reason, until }) => ({
      kind: text(kind),
      name: text(name),
      reason: quoted(text(reason)),
      ...(until !== undefined && { until: text(until) }),
    })),
    breakers: providers.map(({ name, breaker }) => ({ provider: text(name), state: text((breaker as Row)?.state) })),
    isUntaken: untaken.length > 0 && ["queued", "pending"].includes(text(detail.status)),
  };
}

async function suppressionOf(addresses: string[], { db, actor: { tenant } }: ToolWorld): Promise<string | undefined> {
  if (addresses.length === 0) return undefined;
  const found = await findSuppressed(
    db,
    addresses.map((address) => ({ tenant, address })),
  );
  return [...found.values()][0];
}

function lineOf({ at, type, from, to, provider, error, attempt }: Row): string {
  const moved = from === undefined ? text(to) : `${text(from)} → ${text(to)}`;
  const tried = attempt === undefined ? "" : ` (attempt ${attempt}${text(provider) ? ` by ${text(provider)}` : ""})`;
  return `${text(at)} ${text(type)}: ${moved}${tried}${text(error) ? `, ${quoted(text(error))}` : ""}`;
}
