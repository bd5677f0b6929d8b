// An error as one thread tells it to another: its words, and what whoever hears of it decides by.

import { asDatabaseError, isDatabaseError } from "#store/connection/database.ts";
import { ArchiveError } from "./store.ts";

export type Told = {
  kind: "archive" | "database" | "other";
  message: string;
  code: string | undefined;
  cause: Told | undefined;
};

export function tell(error: unknown): Told {
  if (!(error instanceof Error)) return { kind: "other", message: String(error), code: undefined, cause: undefined };
  return {
    kind: kindOf(error),
    message: error.message,
    code: "code" in error && typeof error.code === "string" ? error.code : undefined,
    cause: error.cause === undefined ? undefined : tell(error.cause),
  };
}

function kindOf(error: Error): Told["kind"] {
  if (error instanceof ArchiveError) return "archive";
  return isDatabaseError(error) ? "database" : "other";
}

export function hear({ kind, message, code, cause }: Told): Error {
  const error = KINDS[kind](message);
  if (code !== undefined) Object.assign(error, { code });
  if (cause) error.cause = hear(cause);
  return error;
}

const KINDS = {
  archive: (message: string): Error => new ArchiveError(message),
  database: asDatabaseError,
  other: (message: string): Error => new Error(message),
};
