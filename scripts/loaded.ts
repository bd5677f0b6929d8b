// Runs the tests several times in a row beside twice as many busy loops as there are cores, and stops at the first run that fails: what passes here does not
// depend on the machine's speed. `node scripts/loaded.ts 10`, or with files of tests behind the number.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";

const [times = "10", ...files] = process.argv.slice(2);
const loops = Array.from({ length: 2 * availableParallelism() }, () =>
  spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
);
process.on("exit", () => {
  for (const loop of loops) loop.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

for (let run = 1; run <= Number(times); run++) {
  const startedAt = performance.now();
  const tests = spawn(process.execPath, ["test/run.ts", ...files], { stdio: "inherit" });
  const [code] = await once(tests, "exit");
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  console.log(
    `\nrun ${run} of ${times} beside ${loops.length} busy loops: ${code === 0 ? "passed" : "FAILED"} after ${minutes} min`,
  );
  if (code !== 0) process.exit(1);
}
process.exit(0);
