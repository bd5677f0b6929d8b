// A process with an embedded PostgreSQL, for tests that kill it. It answers with one line of JSON when the server
// is up or refused, stays until it is told "stop", and says "stopped".
//
// Arguments: the home, the directory of the binaries ("" for the packaged ones), and "leave" to end without a stop.

import { join } from "node:path";
import { createInterface } from "node:readline";
import { startEmbedded } from "#embedded/embedded.ts";

const [home = "", binaries = "", then = "stay"] = process.argv.slice(2);
const say = (line: unknown) => process.stdout.write(`${JSON.stringify(line)}\n`);
const paths = { initdb: join(binaries, "initdb"), postgres: join(binaries, "postgres") };

try {
  const server = await startEmbedded({
    home,
    ...(binaries && { binaries: paths }),
    settings: { shared_buffers: "64MB" },
  });
  const { url, dataDirectory, socketDirectory } = server;
  say({ url, dataDirectory, socketDirectory });
  if (then === "stay") {
    for await (const line of createInterface({ input: process.stdin })) if (line === "stop") break;
    process.stdin.destroy();
    await server.stop();
    say("stopped");
  }
} catch (error) {
  say({ name: error instanceof Error ? error.name : "", error: String(error) });
}
