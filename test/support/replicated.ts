// Two real servers: one that leads and a synchronous standby of it, each behind a proxy that can fall silent.
//
// The standby begins as a copy of the other's files, since the packaged PostgreSQL brings no pg_basebackup.

import { execFileSync } from "node:child_process";
import { openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { startEmbedded } from "#embedded/embedded.ts";
import { findPlace } from "#embedded/place.ts";
import { packagedBinaries, runnableBinaries } from "#embedded/postgres-binaries.ts";
import { type Program, spawnLeashed } from "#embedded/server.ts";
import type { Ends } from "./in-reverse.ts";
import { temporaryHome } from "./postgres.ts";
import { openSilentProxy, type SilentProxy } from "./silent-proxy.ts";
import { until } from "./until.ts";

export type Replicated = {
  /** Names both servers. */
  url: string;
  /** The one that leads at first. */
  first: { kill(): void; proxy: SilentProxy };
  promote(): Promise<void>;
};

export async function replicatedServers(t: Ends): Promise<Replicated> {
  const homes = [await temporaryHome(), await temporaryHome()];
  t.after(() => Promise.all(homes.map((home) => rm(home, { recursive: true, force: true, maxRetries: 5 }))));
  const [home = "", copy = ""] = homes;
  const made = await startEmbedded({ home });
  const [, password] = /:([^/@:]+)@/.exec(made.url) ?? [];
  await made.stop();
  const place = await findPlace(home, () => undefined);
  const { postgres } = await runnableBinaries(await packagedBinaries(), place.user, place.copies);
  execFileSync("cp", ["-a", join(home, "postgres"), join(copy, "postgres")]);
  const directories = homes.map((one) => join(one, "postgres"));
  const [leading = "", standing = ""] = directories;
  execFileSync("cp", ["-a", join(standing, "data", "PG_VERSION"), join(standing, "data", "standby.signal")]);

  const run = (directory: string, settings: { [name: string]: string }): Program => {
    const all = {
      listen_addresses: "",
      unix_socket_directories: join(directory, "run"),
      fsync: "off",
      shared_buffers: "64MB",
      max_connections: "100",
      ...settings,
    };
    const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const output = openSync(join(directory, "postgres.log"), "a");
    const program = spawnLeashed(postgres, ["-D", join(directory, "data"), ...args], { user: place.user, output });
    t.after(async () => {
      program.child.kill("SIGCONT");
      program.child.kill("SIGQUIT");
      await program.exited;
    });
    return program;
  };
  const leader = run(leading, { synchronous_standby_names: "*" });
  const from = `host=${join(leading, "run")} port=5432 user=carillon password=${password} application_name=standby`;
  run(standing, { primary_conninfo: from });

  const at = (directory: string) => ({
    host: join(directory, "run"),
    port: 5432,
    user: "carillon",
    database: "carillon",
    ...(password !== undefined && { password }),
  });
  await until(
    () =>
      asking(at(leading), "select from pg_stat_replication where sync_state = 'sync'")
        .then((found) => (found > 0 ? true : undefined))
        .catch(() => undefined),
    60_000,
  );

  const proxies = await Promise.all(directories.map((one) => openSilentProxy(join(one, "run", ".s.PGSQL.5432"))));
  t.after(() => Promise.all(proxies.map((proxy) => proxy.close())));
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    url: `postgres://carillon:${password}@${hosts}/carillon?target_session_attrs=read-write`,
    first: { kill: () => void leader.child.kill("SIGKILL"), proxy: proxies[0] as SilentProxy },
    promote: async () => void (await asking(at(standing), "select pg_promote()")),
  };
}

async function asking(config: pg.ClientConfig, sql: string): Promise<number> {
  const client = new pg.Client(config);
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
