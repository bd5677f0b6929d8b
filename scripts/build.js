// Emits JavaScript and declarations into dist/, and makes the command executable.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
rmSync("dist", { recursive: true, force: true });
// Of what runs in a browser only the types come from the compiler: it knows a document and no Node, the rest the other
// way round.
const browserTypes = "web --noEmit false --declaration --emitDeclarationOnly --rootDir web --outDir dist/web";
for (const project of [["tsconfig.build.json"], browserTypes.split(" ")]) {
  const { status } = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", ...project], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
// Nobody writes code against the dashboard.
rmSync("dist/web/dashboard", { recursive: true, force: true });
// Our own manifest leads `#store/…` to the sources; for what was built of them this one does, for Node and TypeScript alike.
writeFileSync(
  "dist/package.json",
  `${JSON.stringify({ type: "module", imports: { "#*.ts": "./*.js" } }, undefined, 2)}\n`,
);
const { bundle, ENTRIES, madeName } = await import("../dist/http/pages/bundle.js");
for (const entry of Object.keys(ENTRIES)) {
  const file = `dist/web/${madeName(entry)}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, await bundle(entry));
}
chmodSync("dist/cli/carillon.js", 0o755);
