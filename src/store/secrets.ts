// Secrets that the deployment makes for itself, at first use.

import { randomBytes } from "node:crypto";
import type { SecretKeys } from "#domain/sealed.ts";
import type { Queryable } from "#store/connection/database.ts";

const SECRET_BYTES = 32;

/** Of replicas that ask together, one makes it and all are answered with it. */
export async function secretNamed(db: Queryable, name: string): Promise<Buffer> {
  const find = async () =>
    (await db.query<{ secret: Buffer }>("select secret from carillon.secrets where name = $1", [name])).rows[0]?.secret;
  const found = await find();
  if (found) return found;
  await db.query("insert into carillon.secrets (name, secret) values ($1, $2) on conflict do nothing", [
    name,
    randomBytes(SECRET_BYTES),
  ]);
  const made = await find();
  if (!made) throw new Error(`the secret ${name} could not be made`);
  return made;
}

/**
 * What seals endpoints' secrets: the keys of the configuration, and behind them one that the deployment makes for itself. So callbacks are signed
 * where nothing was configured, and what was sealed before it was is still opened.
 */
export const readEndpointKeys = async (db: Queryable, configured: SecretKeys): Promise<SecretKeys> => [
  ...configured,
  await secretNamed(db, "callbacks"),
];
