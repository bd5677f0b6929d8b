// The part of the configuration that is about inboxes: who may read them from a page, and how many at once.

import { readInteger, readList, type SettingsOf } from "./setting.ts";

export type InboxConfig = {
  /** Pages of these origins may read inboxes. */
  allowOrigins: readonly string[];
  /** Streams that one process, and one user in one process, may have open. */
  maxStreams: number;
  streamsPerUser: number;
};

export const INBOX: SettingsOf<InboxConfig> = {
  allowOrigins: {
    env: "CARILLON_ALLOW_ORIGINS",
    expected: "origins like https://app.example.com with commas between them",
    fallback: [],
    read: readOrigins,
  },
  maxStreams: {
    env: "CARILLON_MAX_STREAMS",
    expected: "a whole number from 1 to 1000000",
    // About 20 kB each, so half a gigabyte; a process with more would be long in coming back.
    fallback: 25_000,
    read: readInteger(1, 1_000_000),
  },
  streamsPerUser: {
    env: "CARILLON_STREAMS_PER_USER",
    expected: "a whole number from 1 to 10000",
    // A few devices with a few tabs each.
    fallback: 20,
    read: readInteger(1, 10_000),
  },
};

/** Origins exactly as browsers send them. No wildcard, since cookies may come along. */
function readOrigins(given: unknown): readonly string[] | undefined {
  const list = readList(given);
  return list?.every(isOrigin) ? Object.freeze([...list]) : undefined;
}

const isOrigin = (one: unknown): one is string =>
  typeof one === "string" && /^https?:\/\//.test(one) && URL.canParse(one) && new URL(one).origin === one;
