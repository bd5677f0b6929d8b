// `npm run bench`: sets up what the benchmark needs, then runs it with the arguments given.
//
// Plain JavaScript, because a fresh clone has only the machine's own Node: the product's packages,
// Node 24 among them, are installed first, then the peers into bench/, where nothing of them can
// reach the product.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import "./setup.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const bench = join(root, "bench");

const changedAt = (file) => statSync(join(bench, file), { throwIfNoEntry: false })?.mtimeMs;
const installedAt = changedAt("node_modules/.package-lock.json");
if (installedAt === undefined || installedAt < (changedAt("package-lock.json") ?? 0)) {
  const command = existsSync(join(bench, "package-lock.json")) ? "ci" : "install";
  console.error(`bench: installing the peers (npm ${command})`);
  // npm on the Node that will run them, which is newer than some machines' own: peers may need that.
  const path = [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const { status, error } = spawnSync("npm", [command, "--no-audit", "--no-fund"], {
    cwd: bench,
    env: { ...process.env, PATH: path },
    stdio: ["ignore", 2, 2],
  });
  if (error) console.error(`bench: npm could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

// --expose-gc lets each run start without the garbage of the one before.
const child = spawn(join(root, "node_modules/.bin/node"), ["--expose-gc", "run.ts", ...process.argv.slice(2)], {
  cwd: bench,
  stdio: "inherit",
});
// Ctrl-C reaches the child by itself; what is sent to us alone is handed on. We end when it has ended.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code) => process.exit(code ?? 1));
