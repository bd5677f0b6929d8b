// carillon schedule … and carillon reminder …: what comes by itself.

import type { Run } from "../command.ts";
import { columns, listed, readAll, said } from "./lines.ts";

export const listSchedules: Run = async (_call, world) => {
  const client = await world.client();
  const schedules = await readAll((page) => client.schedules.list(page));
  return listed(schedules, ({ key, cron, every, timezone, paused, nextAt }) =>
    columns([key, cron ?? `every ${every}`, timezone ?? "", paused ? "paused" : (nextAt ?? "over")]),
  );
};

export const listInstants: Run = async ({ args: [key = ""], options }, world) => {
  const { data } = await (await world.client()).schedules.next(key, Number(options.count ?? 5));
  return listed(data, (at) => at);
};

export const pauseSchedule: Run = async ({ args: [key = ""] }, world) => {
  const paused = await (await world.client()).schedules.pause(key);
  return said(`${key} is paused`, paused);
};

export const resumeSchedule: Run = async ({ args: [key = ""] }, world) => {
  const resumed = await (await world.client()).schedules.resume(key);
  return said(`${key} goes on${resumed.nextAt ? `, next at ${resumed.nextAt}` : ""}`, resumed);
};

export const listReminders: Run = async (_call, world) => {
  const client = await world.client();
  const reminders = await readAll((page) => client.reminders.list(page));
  return listed(reminders, ({ key, at, offsets, offsetsFrom }) =>
    columns([key, at, offsets.join(" ") || "no offsets", `(${offsetsFrom})`]),
  );
};

export const showReminder: Run = async ({ args: [key = ""] }, world) => {
  const reminder = await (await world.client()).reminders.get(key);
  const { at, offsetsFrom, plan } = reminder;
  const lines = plan.map(({ before, dueAt, status, notificationIds }) =>
    columns([`  ${before}`, dueAt, status, notificationIds.join(" ")]),
  );
  return { json: reminder, text: [`${key} at ${at}, offsets from ${offsetsFrom}`, ...lines] };
};
