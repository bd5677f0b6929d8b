// Freezes the migrations and the whole schema that a release brings: writes the checksum of each into migrations/checksums.txt.
// One that is frozen already and was edited since is refused. Run it before a release: node scripts/freeze.ts
import { writeFileSync } from "node:fs";
import { CHECKSUMS, filesOf, knownMigrations, refuseEdited } from "#store/connection/migrations.ts";

const known = knownMigrations();
refuseEdited(known);
const files = filesOf(known);
writeFileSync(CHECKSUMS, files.map(({ file, checksum }) => `${checksum}  ${file}\n`).join(""));
const fresh = files.map(({ file }) => file).filter((file) => !known.frozen.has(file));
console.log(`frozen: ${fresh.join(", ") || "nothing new"}`);
