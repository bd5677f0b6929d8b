// Runs before `npm start` and `npm test`, under whatever Node the machine has, before anything is
// installed: installs exactly what the lockfile says when node_modules is missing or older than it.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 20) {
  console.error(`carillon needs Node 20 or newer to set itself up; this is ${process.version}`);
  process.exit(1);
}

const changedAt = (file) => statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs;
const installedAt = changedAt("node_modules/.package-lock.json");
if (installedAt === undefined || installedAt < (changedAt("package-lock.json") ?? 0)) {
  console.error("carillon: installing dependencies (npm ci)");
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  // Without warnings: they would be about the machine's Node, while all of this runs on the Node 24 that comes along.
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  const { status, error } = spawnSync(npm, ["ci", "--include=dev", "--include=optional", ...quiet], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (error) console.error(`carillon: npm could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}
