// The archive, opened: where it is, as configured.

import { directoryStore } from "./directory.ts";
import type { ArchiveSettings } from "./settings.ts";
import type { ArchiveStore } from "./store.ts";

export async function openArchive(settings: ArchiveSettings): Promise<ArchiveStore> {
  if (settings.kind === "directory") return directoryStore(settings.directory);
  // With its HTTP client it takes 8 MB, so only for those who use it.
  const { s3Store } = await import("./s3.ts");
  return s3Store(settings);
}
