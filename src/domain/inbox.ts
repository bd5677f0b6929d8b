// An item of a user's inbox, and how far somebody has read.

import type { NotificationRequest } from "./notification.ts";
import { cut } from "./text.ts";

export type Inbox = { tenant: number; userId: string };

export type InboxItem = {
  /** Of the notification. */
  id: string;
  seq: number;
  category: string | null;
  title: string | null;
  body: string | null;
  data: { [name: string]: unknown } | null;
  link: string | null;
  createdAt: Date;
  readAt: Date | null;
  archivedAt: Date | null;
};

/** What is stored of a notification. */
export type NewItem = Inbox & Pick<InboxItem, "id" | "category" | "title" | "body" | "data" | "link">;

/** How far a reader has come: everything up to `seq` of a numbering. Zero of epoch zero is before anything. */
export type Position = { epoch: number; seq: number };

export const ORIGIN: Position = { epoch: 0, seq: 0 };

export const written = ({ epoch, seq }: Position): string => `${epoch}:${seq}`;

/** Undefined when the text was never one of our positions. */
export function readPosition(text: string): Position | undefined {
  const [, epoch, seq] = /^(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  return epoch === undefined ? undefined : { epoch: Number(epoch), seq: Number(seq) };
}

const SCHEME = /^[\s\0-\x20]*([a-z][a-z0-9+.-]*):/i;
const CATEGORY_LENGTH = 128;

/** The item that a notification makes, or why it cannot be one. */
export function itemOf(
  { id, tenant }: { id: string; tenant: number },
  { recipient = {}, content, metadata = {} }: NotificationRequest,
): NewItem | { fault: string } {
  const { title = null, body = null, data = null, clickAction: link = null } = content;
  const category = data?.category ?? metadata.category;
  if (recipient.userId === undefined) return { fault: "there is no recipient.userId" };
  // A link that runs a script would do so in the page of whoever reads it.
  const scheme = link === null ? undefined : SCHEME.exec(link)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "https" && scheme !== "http") {
    return { fault: "content.clickAction must be an http or https URL, or a path" };
  }
  return {
    id,
    tenant,
    userId: recipient.userId,
    category: typeof category === "string" ? cut(category, CATEGORY_LENGTH) : null,
    title,
    body,
    data,
    link,
  };
}

/** As readers see it, in lists and in streams alike. */
export const bodyOfItem = ({ seq: _, createdAt, readAt, archivedAt, ...item }: InboxItem) => ({
  ...item,
  createdAt: createdAt.toISOString(),
  readAt: readAt?.toISOString() ?? null,
  archivedAt: archivedAt?.toISOString() ?? null,
});
