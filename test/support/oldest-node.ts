// npm that believes to run on the oldest Node we allow, whatever the machine has: it then chooses and warns as it would there.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Variables } from "./process.ts";

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
const oldest = manifest.engines.node.replace(">=", "v");
const pretend = `Object.defineProperty(process,"version",{value:"${oldest}"})`;

export const onOldestNode = (env: Variables): Variables => ({
  ...env,
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(pretend)}`,
});
