// The client's calls for recurring schedules and reminders.

import type { NotificationRequest } from "#domain/notification.ts";
import type { CallOptions } from "./client.ts";

/** A notification without a time of its own, for one recipient or several. */
export type Notice = Omit<NotificationRequest, "scheduledFor" | "expiresAt" | "idempotencyKey"> & {
  recipients?: NonNullable<NotificationRequest["recipient"]>[];
};
export type ScheduleRequest = {
  cron?: string;
  every?: string;
  timezone?: string;
  from?: string;
  until?: string;
  catchUp?: "once" | "skip";
  notification: Notice;
};
export type Schedule = ScheduleRequest & {
  key: string;
  paused: boolean;
  nextAt?: string;
  /** Why it could not be fired the last time, and when that is tried again. */
  error?: string;
  retryAt?: string;
  createdAt: string;
  updatedAt: string;
};
export type ScheduleRun = {
  tick: string;
  at: string;
  outcome: "sending" | "sent" | "skipped" | "failed";
  skipped: number;
  notificationIds: string[];
  error?: string;
};
export type ReminderRequest = {
  at: string;
  before?: string[];
  scopes?: string[];
  timezone?: string;
  notification: Notice;
};
export type Reminder = ReminderRequest & { key: string; offsets: string[]; offsetsFrom: string };
export type ReminderLine = {
  at: string;
  before: string;
  dueAt: string;
  status: "planned" | "sending" | "sent" | "missed" | "failed";
  retryAt?: string;
  endedAt?: string;
  notificationIds: string[];
  error?: string;
};
export type ReminderScope = {
  scope: string;
  before: string[];
  updatedAt: string;
  replan?: { done: number; total: number; startedAt: string; finishedAt?: string };
};
export type Page<Item> = { data: Item[]; nextCursor: string | null };
export type PageOptions = { limit?: number; cursor?: string };

export type SchedulingClient = {
  schedules: {
    put(key: string, schedule: ScheduleRequest, options?: CallOptions): Promise<Schedule>;
    get(key: string, options?: CallOptions): Promise<Schedule>;
    list(page?: PageOptions, options?: CallOptions): Promise<Page<Schedule>>;
    next(key: string, count?: number, options?: CallOptions): Promise<{ data: string[] }>;
    runs(key: string, page?: PageOptions, options?: CallOptions): Promise<Page<ScheduleRun>>;
    pause(key: string, options?: CallOptions): Promise<Schedule>;
    resume(key: string, options?: CallOptions): Promise<Schedule>;
    delete(key: string, options?: CallOptions): Promise<void>;
  };
  reminders: {
    put(key: string, reminder: ReminderRequest, options?: CallOptions): Promise<Reminder & { plan: ReminderLine[] }>;
    get(key: string, options?: CallOptions): Promise<Reminder & { plan: ReminderLine[] }>;
    list(page?: PageOptions & { scope?: string }, options?: CallOptions): Promise<Page<Reminder>>;
    delete(key: string, options?: CallOptions): Promise<void>;
    putScope(scope: string, before: string[], options?: CallOptions): Promise<ReminderScope>;
    getScope(scope: string, options?: CallOptions): Promise<ReminderScope>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function schedulingClient(call: Call): SchedulingClient {
  const schedule = (key: string, rest = "") => `/v1/schedules/${encodeURIComponent(key)}${rest}`;
  const reminder = (key: string) => `/v1/reminders/${encodeURIComponent(key)}`;
  const scopeOf = (scope: string) => `/v1/reminder-scopes/${encodeURIComponent(scope)}`;
  return {
    schedules: {
      put: (key, body, options) => call("PUT", schedule(key), options, body),
      get: (key, options) => call("GET", schedule(key), options),
      list: (page, options) => call("GET", `/v1/schedules${pageQuery(page)}`, options),
      next: (key, count = 5, options) => call("GET", schedule(key, `/next?count=${count}`), options),
      runs: (key, page, options) => call("GET", schedule(key, `/runs${pageQuery(page)}`), options),
      pause: (key, options) => call("POST", schedule(key, "/pause"), options),
      resume: (key, options) => call("POST", schedule(key, "/resume"), options),
      delete: (key, options) => call("DELETE", schedule(key), options),
    },
    reminders: {
      put: (key, body, options) => call("PUT", reminder(key), options, body),
      get: (key, options) => call("GET", reminder(key), options),
      list: (page, options) => call("GET", `/v1/reminders${pageQuery(page)}`, options),
      delete: (key, options) => call("DELETE", reminder(key), options),
      putScope: (scope, before, options) => call("PUT", scopeOf(scope), options, { before }),
      getScope: (scope, options) => call("GET", scopeOf(scope), options),
    },
  };
}

export function pageQuery(page: { [name: string]: unknown } = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(page)) if (value !== undefined) query.set(name, String(value));
  return query.size > 0 ? `?${query}` : "";
}
