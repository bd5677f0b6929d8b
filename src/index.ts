// Carillon inside a Node application: send without a network hop, in the application's own
// transaction if it likes.

import { type Config, FORMER_NAME, readConfig } from "#config/read.ts";
import type { Acceptance, Decision } from "#domain/acceptance.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Acceptances, accept, acceptWithin } from "#steps/walk/accept.ts";
import type { Queryable } from "#store/connection/database.ts";
import { createDueHint, createReadyHint } from "#store/connection/hint.ts";
import { findTenant } from "#store/tenants.ts";
import { Facts } from "#telemetry/facts.ts";
import { createLog } from "#telemetry/log.ts";
import { openTraces } from "#telemetry/traces/traces.ts";
import { openAcceptances } from "#wiring/accept.ts";
import { openClock, openStore, prepareDatabase, reachDatabase } from "#wiring/database.ts";
import { openEngines } from "#wiring/engines.ts";
import { type Stop, unwind } from "#wiring/undo.ts";

export type { Config } from "#config/read.ts";
export type { Acceptance, Decision as Outcome } from "#domain/acceptance.ts";
export type { NotificationRequest } from "#domain/notification.ts";
export { type Fault, Problem, type ProblemCode } from "#domain/problems.ts";

export type CarillonOptions = {
  /** Default: DATABASE_URL, the config file, or an embedded PostgreSQL under CARILLON_HOME. */
  databaseUrl?: string;
  home?: string;
  /** Whose notifications these are. */
  tenant?: string;
  logLevel?: Config["logLevel"];
};

/** What we need of a `pg` client, in words of our own: an application need not have its types. */
export type Transaction = { query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> };

export type SendOptions = {
  /** A `pg` client with an open transaction: the notification exists if and only if it commits. */
  tx?: Transaction;
};

export type Carillon = {
  /** Resolves after the commit (with `tx`, after the insert). Throws a Problem when it is refused. */
  send(request: NotificationRequest, options?: SendOptions): Promise<Acceptance>;
  /** One decision per request, in order: an acceptance, or the Problem with that one. */
  sendBatch(requests: readonly NotificationRequest[], options?: SendOptions): Promise<Decision[]>;
  /** Waits for what is under way and lets go of the database. */
  close(): Promise<void>;
};

type Opened = { acceptances: Acceptances; tenant: number; close(): Promise<void> };

/** Connects, and migrates the schema if need be, at the first send. */
export function createCarillon(options: CarillonOptions = {}): Carillon {
  let opening: Promise<Opened> | undefined;
  const opened = (): Promise<Opened> => {
    opening ??= open(options).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  const sendBatch: Carillon["sendBatch"] = async (requests, { tx } = {}) => {
    const { acceptances, tenant } = await opened();
    return tx ? acceptWithin(tx as Queryable, tenant, requests, acceptances) : accept(tenant, requests, acceptances);
  };
  return {
    sendBatch,
    async send(request, sendOptions) {
      const [outcome] = await sendBatch([request], sendOptions);
      if (!outcome || outcome instanceof Problem) throw outcome;
      return outcome;
    },
    async close() {
      const toClose = await opening?.catch(() => undefined);
      opening = undefined;
      await toClose?.close();
    },
  };
}

async function open({ tenant = "default", ...given }: CarillonOptions): Promise<Opened> {
  const config: Config = { ...(await readConfig({ env: process.env, cwd: process.cwd() })), ...given };
  const log = createLog(given.logLevel ?? "warn");
  for (const names of config.formerNames) log.warn(names, FORMER_NAME);
  // Whoever forgot DATABASE_URL would otherwise look in vain for what they sent.
  if (config.databaseUrl === undefined) {
    log.warn({ home: config.home }, "there is no DATABASE_URL: an embedded PostgreSQL keeps the notifications");
  }
  const facts = new Facts(log);
  const undo: Stop[] = [];
  try {
    const server = await reachDatabase(config, facts);
    undo.push(server.stop);
    await prepareDatabase(server, facts);
    const database = openStore(config, server, facts);
    undo.push(database.close);
    const tenantId = await findTenant(database.own, tenant);
    if (tenantId === undefined) throw new Problem("NOT_FOUND", `there is no tenant ${tenant}`);
    const clock = await openClock(database, facts);
    undo.push(async () => clock.stop());
    const engines = await openEngines(config, database, log, undo);
    const { acceptances } = openAcceptances(
      { config, database, clock, facts, traces: openTraces(config.traceParents), engines },
      { wake: createReadyHint(database.own), plan: createDueHint(database.own) },
    );
    undo.push(() => acceptances.close());
    return { acceptances, tenant: tenantId, close: () => unwind(undo) };
  } catch (error) {
    await unwind(undo);
    throw error;
  }
}
