// The files of migrations/: the numbered ones in their order, and one that stands for all of them up to its number.
//
// A release freezes what it brings: checksums.txt keeps the digest of every released file, and an edited one is refused, since
// databases that were made with it would never hear of the change.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

const DIRECTORY = new URL("../../../migrations/", import.meta.url);
export const CHECKSUMS = new URL("checksums.txt", DIRECTORY);

export class MigrationError extends Error {
  override name = "MigrationError";
}

export type Migration = { version: number; name: string; sql: string };
export type Migrations = {
  /** 1, 2, 3 … */
  numbered: Migration[];
  /** The schema that the numbered ones up to this version bring, in one piece: for a new database. */
  whole?: Migration;
  /** What was released, by file. */
  frozen: Map<string, string>;
};

export function knownMigrations(): Migrations {
  const files = readdirSync(DIRECTORY).sort();
  const read = (file: string) => readFileSync(new URL(file, DIRECTORY), "utf8");
  const whole = files.findLast((file) => /^schema_\d{4}\.sql$/.test(file));
  return {
    numbered: files
      .filter((file) => /^\d{4}_.+\.sql$/.test(file))
      .map((file) => ({ version: Number(file.slice(0, 4)), name: file.slice(5, -4), sql: read(file) })),
    ...(whole && { whole: { version: Number(whole.slice(7, 11)), name: "schema", sql: read(whole) } }),
    frozen: readFrozen(readFileSync(CHECKSUMS, "utf8")),
  };
}

/** As sha256sum writes it. */
function readFrozen(text: string): Map<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line !== "");
  return new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]));
}

/** The whole schema is as much a part of a release as what is numbered: most databases are made from it. */
export const filesOf = ({ numbered, whole }: Migrations): { file: string; checksum: string }[] => [
  ...numbered.map((one) => ({ file: fileOf(one), checksum: checksumOf(one) })),
  ...(whole ? [{ file: `schema_${padded(whole.version)}.sql`, checksum: checksumOf(whole) }] : []),
];

const padded = (version: number) => String(version).padStart(4, "0");

export const fileOf = ({ version, name }: Pick<Migration, "version" | "name">): string =>
  `${padded(version)}_${name}.sql`;

/** The same whether or not git has written the lines' ends in Windows' way. */
export const checksumOf = ({ sql }: Pick<Migration, "sql">): string =>
  createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");

/** Of a file that was released and says something else now. */
export function refuseEdited(known: Migrations): void {
  const edited = filesOf(known).find(({ file, checksum }) => (known.frozen.get(file) ?? checksum) !== checksum);
  if (!edited) return;
  throw new MigrationError(
    `migrations/${edited.file} is not what was released under this name: put the file back as it was, ` +
      "and what it is to change into a new migration",
  );
}
