// CPU profiles for --profile: of this process around a measurement, of a child through its flags.
// Chrome's developer tools and speedscope read them.

import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";

export async function profiled<Value>(
  directory: string | undefined,
  label: string,
  work: () => Promise<Value>,
): Promise<Value> {
  if (directory === undefined) return work();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  try {
    return await work();
  } finally {
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `${label.replaceAll(/\W+/g, "-")}.cpuprofile`), JSON.stringify(profile));
  }
}

/** Flags for a child that is to write a profile of its whole life when it ends. */
export const profileFlags = (directory: string | undefined, name: string): string[] =>
  directory === undefined
    ? []
    : ["--cpu-prof", `--cpu-prof-dir=${directory}`, `--cpu-prof-name=${name}-${Date.now()}.cpuprofile`];
