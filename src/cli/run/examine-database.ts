// The database's part of the doctor: whether it answers, of which age it is, and what stands in its way.

import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#config/read.ts";
import { findRunning } from "#embedded/embedded.ts";
import type { Queryable } from "#store/connection/database.ts";
import {
  examineServer,
  findOpenTransactions,
  findPendingMigrations,
  type OpenTransaction,
  readServerClock,
} from "#store/examine.ts";
import { listTakes } from "#store/workers.ts";
import { checkDatabase, openStore } from "#wiring/database.ts";
import { SILENT_MS } from "#wiring/member.ts";
import type { World } from "../command.ts";
import { type Finding, fail, ok, warn } from "./findings.ts";
import { lasting, sizeOf } from "./times.ts";

const ASTRAY_MS = 1_000;
/** A minute keeps followers, and vacuum, waiting; ten of them keep dead rows for everybody. */
const [LONG_MS, TOO_LONG_MS] = [60_000, 600_000];
const [LITTLE_BYTES, TOO_LITTLE_BYTES] = [2_000_000_000, 200_000_000];

export async function examineDatabase(world: World): Promise<Finding[]> {
  const config = await world.config();
  const disk = config.databaseUrl === undefined ? await examineDisk(config.home) : [];
  const place = await findDatabase(config);
  if (typeof place !== "string") return [place, ...disk];
  const database = openStore(config, { url: place }, await world.facts());
  try {
    return [...(await look(database.own)), ...disk];
  } catch (error) {
    return [fail("database", `fails: ${error instanceof Error ? error.message : error}`, "read its log"), ...disk];
  } finally {
    await database.close();
  }
}

/** Nothing is started for a look. */
async function findDatabase({ databaseUrl, databaseDirectUrl, home }: Config): Promise<string | Finding> {
  try {
    if (databaseUrl !== undefined) {
      const url = databaseDirectUrl ?? databaseUrl;
      await checkDatabase(url);
      return url;
    }
    if (!existsSync(join(home, "postgres"))) {
      return fail("database", `there is none in ${home}`, "set CARILLON_HOME or DATABASE_URL as the service has it");
    }
    return (await findRunning(home)) ?? fail("database", `the one in ${home} does not run`, "carillon start");
  } catch (error) {
    return fail("database", error instanceof Error ? error.message : String(error), "carillon check says more");
  }
}

async function look(db: Queryable): Promise<Finding[]> {
  const { version, isReadOnly, connections, mostConnections } = await examineServer(db);
  const answers = `PostgreSQL ${version}, ${connections} of ${mostConnections} connections in use`;
  const findings = [
    isReadOnly
      ? fail("database", `${answers}; it is a standby`, "let DATABASE_URL lead to the primary")
      : connections > mostConnections * 0.9
        ? warn("database", answers, "raise max_connections, or lower CARILLON_DATABASE_CONNECTIONS")
        : ok("database", answers),
    await clockOf(db),
    transactionsOf(await findOpenTransactions(db, LONG_MS)),
  ];
  const migrations = await findPendingMigrations(db);
  findings.push(schemaOf(migrations));
  if (migrations) findings.push(await workersOf(db));
  return findings;
}

/** What was shown at some moment between question and answer bounds how far the clocks are apart. */
async function clockOf(db: Queryable): Promise<Finding> {
  const asked = Date.now();
  const shown = await readServerClock(db);
  const answered = Date.now();
  const aheadMs = shown < asked ? asked - shown : shown > answered ? answered - shown : 0;
  if (Math.abs(aheadMs) <= ASTRAY_MS) return ok("clock", "this machine's and the database's agree");
  const how = `${lasting(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"} the database's`;
  return warn("clock", `this machine's is ${how}`, "set it by NTP; the database's decides, so nothing is sent early");
}

function transactionsOf([oldest, ...others]: OpenTransaction[]): Finding {
  if (!oldest) return ok("transactions", `none is open for more than ${lasting(LONG_MS)}`);
  const more = others.length > 0 ? `, and ${others.length} more` : "";
  const detail = `${oldest.who} is ${oldest.state} for ${lasting(oldest.ageMs)}${more}`;
  const advice = "it holds up who follows events, and vacuum: end it";
  return oldest.ageMs > TOO_LONG_MS ? fail("transactions", detail, advice) : warn("transactions", detail, advice);
}

function schemaOf(found: { pending: string[]; newer: number } | undefined): Finding {
  if (!found) return fail("schema", "this database has never been used by Carillon", "carillon start, or migrate");
  if (found.newer > 0) return fail("schema", "is newer than this Carillon", "run one as new as that");
  const { pending } = found;
  if (pending.length === 0) return ok("schema", "up to date");
  return fail("schema", `${pending.length} migrations are pending: ${pending.join(", ")}`, "carillon migrate");
}

async function workersOf(db: Queryable): Promise<Finding> {
  const alive = (await listTakes(db, SILENT_MS)).length;
  return alive > 0
    ? ok("workers", `${alive} alive`)
    : fail("workers", "none is alive: nothing is sent", "start one with the role worker");
}

async function examineDisk(home: string): Promise<Finding[]> {
  const stats = await statfs(join(home, "postgres")).catch(() => undefined);
  if (!stats) return [];
  const [free, all] = [stats.bavail * stats.bsize, stats.blocks * stats.bsize];
  const detail = `${sizeOf(free)} of ${sizeOf(all)} free for the embedded database`;
  const advice = "make room: a database that cannot write accepts nothing";
  if (free < TOO_LITTLE_BYTES) return [fail("disk", detail, advice)];
  return [free < LITTLE_BYTES || free < all * 0.05 ? warn("disk", detail, advice) : ok("disk", detail)];
}
