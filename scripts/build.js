// Emits JavaScript and declarations into dist/, and makes the command executable.
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
rmSync("dist", { recursive: true, force: true });
const emit = "--noEmit false --declaration --sourceMap".split(" ");
// What runs in a browser is compiled apart: it knows a document and no Node, the rest the other way round.
const browser = ["web/inbox", ...emit, "--rootDir", "web/inbox", "--outDir", "dist/web/inbox"];
for (const project of [["tsconfig.build.json"], browser]) {
  const { status } = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", ...project], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
// Our own manifest leads `#store/…` to the sources; for what was built of them this one does, for Node and TypeScript alike.
writeFileSync(
  "dist/package.json",
  `${JSON.stringify({ type: "module", imports: { "#*.ts": "./*.js" } }, undefined, 2)}\n`,
);
chmodSync("dist/cli/carillon.js", 0o755);
