// Emits JavaScript and declarations into dist/, and makes the command executable.
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
rmSync("dist", { recursive: true, force: true });
const emit = "--noEmit false --declaration --sourceMap".split(" ");
// What runs in a browser is compiled apart: it knows a document and no Node, the rest the other way round.
const browser = ["src/inbox", ...emit, "--rootDir", "src/inbox", "--outDir", "dist/inbox"];
for (const project of [["tsconfig.build.json"], browser]) {
  const { status } = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", ...project], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
chmodSync("dist/cli/carillon.js", 0o755);
