// Writes the request schema and the needs of each channel as a migration, for carillon.send().
// Run it with the number of the next migration after the schemas in src/domain/notification.ts
// have changed: node scripts/contract.ts 0007
import { writeFileSync } from "node:fs";
import { contractMigration } from "../test/support/contract.ts";

const [, , number] = process.argv;
if (!/^\d{4}$/.test(number ?? "")) {
  console.error("usage: node scripts/contract.ts <four digits>");
  process.exit(2);
}
writeFileSync(new URL(`../migrations/${number}_contract.sql`, import.meta.url), contractMigration());
