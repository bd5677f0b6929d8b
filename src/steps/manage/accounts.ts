// Tenants' own accounts with providers: sealed when kept, opened when read.

import type pg from "pg";
import type { OwnAccount, Providers } from "#channels/providers.ts";
import type { Settings } from "#channels/settings.ts";
import type { KeyActor } from "#domain/actor.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { isOldSeal, open, type SecretKeys, seal } from "#domain/sealed.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { deleteCredentials, listCredentials, putCredentials, resealCredentials } from "#store/credentials.ts";
import { deletePause } from "#store/pauses.ts";

export type AccountWorld = {
  pool: pg.Pool;
  providers: Pick<Providers, "find" | "tryOwn">;
  secretKeys: SecretKeys;
  /** Reads the accounts again, now: something changed here. */
  reload: () => Promise<void>;
};

const placeOf = (tenant: number, provider: string): string => `${tenant} ${provider}`;

/** Kept only if a provider can be made of it. */
export async function keepAccount(
  { pool, providers, secretKeys, reload }: AccountWorld,
  actor: KeyActor,
  provider: string,
  settings: Settings,
): Promise<Problem | undefined> {
  const { tenant } = actor;
  if (secretKeys.length === 0) {
    return new Problem("NOT_CONFIGURED", "set CARILLON_SECRET_KEYS to keep tenants' credentials");
  }
  if (!providers.find(provider, tenant)) return new Problem("NOT_FOUND", `there is no provider ${provider}`);
  const faults = await providers.tryOwn(settings);
  if (faults.length > 0) return invalid(faults);
  const sealed = seal(secretKeys, placeOf(tenant, provider), JSON.stringify(settings));
  await inTransaction(pool, async (tx) => {
    await putCredentials(tx, tenant, provider, sealed);
    // Of what is sealed nothing but its type: which of the other settings are secret, each type knows for itself.
    await writeAudit(tx, actor, { action: "account.keep", object: objectOf(provider), after: { type: settings.type } });
  });
  await reload();
  return undefined;
}

/** Back to the deployment's account. False when the tenant had none of its own. */
export async function forgetAccount(
  { pool, reload }: Pick<AccountWorld, "pool" | "reload">,
  actor: KeyActor,
  provider: string,
): Promise<boolean> {
  const isForgotten = await inTransaction(pool, async (tx) => {
    if (!(await deleteCredentials(tx, actor.tenant, provider))) return false;
    // With the account goes its pause: what waited for it goes another way.
    await deletePause(tx, { kind: "provider", name: `${provider}@${actor.tenant}` });
    await writeAudit(tx, actor, { action: "account.forget", object: objectOf(provider) });
    return true;
  });
  if (isForgotten) await reload();
  return isForgotten;
}

const objectOf = (provider: string) => ({ kind: "account", name: provider });

/** All of them, also what cannot be opened. What was sealed with an old key is sealed again with the first. */
export async function readAccounts(db: Queryable, keys: SecretKeys): Promise<OwnAccount[]> {
  const accounts: OwnAccount[] = [];
  for (const row of await listCredentials(db)) {
    const { tenant, provider, sealed } = row;
    const place = placeOf(tenant, provider);
    const plain = open(keys, place, sealed);
    accounts.push({ tenant, provider, settings: plain === undefined ? undefined : (JSON.parse(plain) as Settings) });
    if (plain !== undefined && isOldSeal(keys, sealed)) await resealCredentials(db, row, seal(keys, place, plain));
  }
  return accounts;
}
