// The part of the client for development and for tests of applications: the mailbox, and what is there with CARILLON_DEVELOPMENT only, the clock and faults.

import type { Channel, NotificationRequest } from "#domain/notification.ts";
import type { CallOptions } from "./client.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type KeptMessage = {
  id: string;
  notificationId: string;
  channel: Channel;
  /** Everybody it would have gone to, in lower case. */
  to: string[];
  /** With its template filled in. */
  message: NotificationRequest & { device?: { token: string; platform: "ios" | "android" | "web" } };
  at: string;
};
export type WholeMessage = KeptMessage & {
  /** As the channel's own provider would have sent it. Not of what an older release kept. */
  wire?: {
    as: "smtp" | "twilio" | "fcm" | "apns" | "webpush" | "slack" | "webhook" | "inbox" | "console" | "file";
    type: string;
    body: string;
    attempt: number;
    headers?: { [name: string]: string };
    url?: string;
    mail?: {
      from: string;
      to: string[];
      cc: string[];
      bcc: string[];
      replyTo?: string;
      subject: string;
      text: string;
      headers: { [name: string]: string };
      messageId: string;
    };
    sms?: { encoding: "GSM-7" | "UCS-2"; segments: number; characters: number };
  };
};
export type KeptFilters = PageOptions & {
  channel?: Channel;
  notificationId?: string;
  /** Any of its recipients, whole. */
  to?: string;
  /** Some of its words. */
  search?: string;
  /** The id of one that is known already. */
  after?: string;
};

export type DevClient = {
  dev: {
    messages: {
      /** The newest first. */
      list(filters?: KeptFilters, options?: CallOptions): Promise<Page<KeptMessage>>;
      /** The messages that fit, as soon as there is one; none when the time is over. `seconds` is 10 unless said, and 60 at most. */
      wait(filters?: KeptFilters & { seconds?: number }, options?: CallOptions): Promise<KeptMessage[]>;
      get(id: string, options?: CallOptions): Promise<WholeMessage>;
      delete(id: string, options?: CallOptions): Promise<void>;
      clear(options?: CallOptions): Promise<void>;
    };
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

/** The answer comes when the time is over, and then has to arrive. */
const SLACK_MS = 10_000;

export function devClient(call: Call): DevClient {
  const path = (id: string) => `/v1/dev/messages/${encodeURIComponent(id)}`;
  return {
    dev: {
      messages: {
        list: (filters, options) => call("GET", `/v1/dev/messages${pageQuery(filters)}`, options),
        async wait({ seconds = 10, ...filters } = {}, options) {
          const query = pageQuery({ ...filters, wait: `${seconds}s` });
          const timeoutMs = seconds * 1000 + SLACK_MS;
          return (await call<Page<KeptMessage>>("GET", `/v1/dev/messages${query}`, { timeoutMs, ...options })).data;
        },
        get: (id, options) => call("GET", path(id), options),
        delete: (id, options) => call("DELETE", path(id), options),
        clear: (options) => call("DELETE", "/v1/dev/messages", options),
      },
    },
  };
}
