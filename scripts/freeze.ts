// Freezes the migrations that a release brings: writes the checksum of each into migrations/checksums.txt. One that is frozen
// already and was edited since is refused. Run it before a release: node scripts/freeze.ts
import { writeFileSync } from "node:fs";
import { CHECKSUMS, checksumOf, fileOf, knownMigrations, refuseEdited } from "#store/connection/migrations.ts";

const known = knownMigrations();
refuseEdited(known);
writeFileSync(CHECKSUMS, known.numbered.map((one) => `${checksumOf(one)}  ${fileOf(one)}\n`).join(""));
console.log(
  `frozen: ${
    known.numbered
      .map(fileOf)
      .filter((file) => !known.frozen.has(file))
      .join(", ") || "nothing new"
  }`,
);
