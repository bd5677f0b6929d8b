// What became of a notification, drawn: one line for each thing that happened, and how long nothing did in between.

import type { NotificationDetail, TimelineEvent } from "#client/client.ts";
import { colourOf, type Paint } from "../paint.ts";
import { clockOf, dayOf, lasting } from "./times.ts";

/** Less is no wait worth a line. */
const WORTH_MS = 100;

export function timelineOf(detail: NotificationDetail, paint: Paint): string[] {
  const { notificationId, status, channel, priority, recipient, events } = detail;
  const to = Object.entries(recipient)
    .filter(([, value]) => typeof value === "string" && value !== "")
    .map(([, value]) => value)
    .join(" ");
  const head = [
    `${paint("bold", notificationId)}  ${paint(colourOf(status), status)}`,
    `  ${channel}${to === "" ? "" : ` to ${to}`}, ${priority}`,
    ...aboutOf(detail),
    "",
  ];
  const lines: string[] = [];
  for (const [n, event] of events.entries()) {
    const before = events[n - 1];
    if (before) lines.push(...between(before, startOf(event, detail), paint));
    const isNewDay = !before || dayOf(before.at) !== dayOf(event.at);
    if (isNewDay) lines.push(paint("faint", `  ${dayOf(event.at)}`));
    lines.push(...linesOf(event, detail, paint));
  }
  return [...head, ...lines, ...openEnd(detail, paint)];
}

function aboutOf({ content, scheduledFor, expiresAt, traceId, idempotencyKey }: NotificationDetail): string[] {
  const { subject, title, templateId } = content;
  const said: [name: string, value: string | undefined][] = [
    ["template", templateId],
    ["subject", subject ?? title],
    ["scheduled for", scheduledFor],
    ["expires at", expiresAt],
    ["idempotency key", idempotencyKey],
    ["trace", traceId],
  ];
  return said.flatMap(([name, value]) => (value === undefined ? [] : [`  ${name} ${value}`]));
}

/** When an attempt began; of all else when it happened. */
function startOf(event: TimelineEvent, { attempts }: NotificationDetail): string {
  return (event.type === "attempt" && triedIn(event, attempts)?.startedAt) || event.at;
}

const triedIn = (event: { at: string; attempt: number }, attempts: NotificationDetail["attempts"]) =>
  attempts.find(({ number, endedAt }) => number === event.attempt && endedAt === event.at) ??
  attempts.findLast(({ number }) => number === event.attempt);

function between(before: TimelineEvent, until: string, paint: Paint): string[] {
  const waitedMs = Date.parse(until) - Date.parse(before.at);
  return waitedMs < WORTH_MS ? [] : [paint("faint", `                 │  ${lasting(waitedMs)}`)];
}

function linesOf(event: TimelineEvent, { attempts }: NotificationDetail, paint: Paint): string[] {
  const error = "error" in event ? event.error : undefined;
  const words = error === undefined ? [] : [`                 │  ${error}`];
  return [`  ${clockOf(event.at)}   ${paint(colourOf(event.to), "●")}  ${nameOf(event, attempts, paint)}`, ...words];
}

function nameOf(event: TimelineEvent, attempts: NotificationDetail["attempts"], paint: Paint): string {
  const to = paint(colourOf(event.to), event.to);
  if (event.type !== "attempt") {
    const by = "provider" in event ? ` by ${event.provider}` : "";
    const wait = event.type === "postponed" ? ` for ${lasting(event.detail.waitMs)}` : "";
    return event.type === event.to ? `${to}${by}` : `${event.type}${by}${wait} → ${to}`;
  }
  const { latencyMs, cost, worker } = triedIn(event, attempts) ?? {};
  const more = [
    latencyMs === undefined ? "" : `in ${lasting(latencyMs)}`,
    cost ? `for ${cost}` : "",
    worker === undefined ? "" : `(${worker})`,
  ].filter((part) => part !== "");
  const by = event.provider === undefined ? "" : ` by ${event.provider}`;
  return `attempt ${event.attempt}${by}: ${event.outcome} → ${to}  ${paint("faint", more.join(" "))}`.trimEnd();
}

/** What has not ended says what it waits for. */
function openEnd({ status, scheduledFor }: NotificationDetail, paint: Paint): string[] {
  const told: { [status: string]: string } = {
    pending: scheduledFor ? `waits until ${scheduledFor}` : "waits for its time",
    queued: "waits for a worker",
    processing: "a worker has it",
  };
  const line = told[status];
  return line === undefined ? [] : [paint("yellow", `                 ○  ${line}`)];
}
