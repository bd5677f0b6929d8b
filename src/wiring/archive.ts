// The archive, wired: where it is, as configured.

import { directoryStore } from "#archive/directory.ts";
import { s3Store } from "#archive/s3.ts";
import type { ArchiveSettings } from "#archive/settings.ts";
import type { ArchiveStore } from "#archive/store.ts";

export const openArchive = (settings: ArchiveSettings): ArchiveStore =>
  settings.kind === "directory" ? directoryStore(settings.directory) : s3Store(settings);
