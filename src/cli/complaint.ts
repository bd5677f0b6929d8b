// Why a command fails, in words, and the exit code for it. What is expected to happen to operators is told in a sentence, a bug with
// its stack.

import { ArchiveError } from "#archive/store.ts";
import { CarillonError } from "#client/client.ts";
import { ConfigError } from "#config/fault.ts";
import { EmbeddedError } from "#embedded/embedded.ts";
import { MigrationError } from "#store/connection/migrations.ts";
import { UnusableDatabaseError } from "#store/connection/refusals.ts";
import type { Complaint } from "#supervisor/messages.ts";
import { StartError } from "#supervisor/processes.ts";
import { withoutSecrets } from "#telemetry/log.ts";
import { UnmetNeed } from "#wire/optional.ts";

export const EX_CONFIG = 78;

export function complaintOf(error: unknown): Complaint {
  if (error instanceof StartError) return error.complaint;
  const isListening =
    error instanceof Error && "syscall" in error && ["listen", "bind", "getaddrinfo"].includes(String(error.syscall));
  const isExpected =
    isListening ||
    error instanceof ArchiveError ||
    error instanceof CarillonError ||
    error instanceof ConfigError ||
    error instanceof EmbeddedError ||
    error instanceof UnusableDatabaseError ||
    error instanceof MigrationError ||
    error instanceof UnmetNeed;
  const told = isListening ? listenFault(error) : isExpected ? error.message : undefined;
  const text = told ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
  return { said: withoutSecrets(text), exitCode: error instanceof ConfigError ? EX_CONFIG : 1 };
}

/** Why nothing can be served at HOST and PORT. */
function listenFault(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return `${error.message}. Something else listens there: stop it, or set PORT.`;
  if (code === "EACCES") return `${error.message}. Ports below 1024 need more rights: set PORT.`;
  return `${error.message}. Correct HOST.`;
}
