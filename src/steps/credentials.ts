// Tenants' own accounts with providers: sealed when kept, opened when read.

import type { Settings } from "../channels/settings.ts";
import { isOldSeal, open, type SecretKeys, seal } from "../domain/sealed.ts";
import { listCredentials, putCredentials, resealCredentials } from "../store/credentials.ts";
import type { Queryable } from "../store/database.ts";

export type Account = { tenant: number; provider: string; settings: Settings };

const placeOf = (tenant: number, provider: string): string => `${tenant} ${provider}`;

export function keepAccount(db: Queryable, keys: SecretKeys, { tenant, provider, settings }: Account): Promise<void> {
  return putCredentials(db, tenant, provider, seal(keys, placeOf(tenant, provider), JSON.stringify(settings)));
}

/** All that can be opened. What was sealed with an old key is sealed again with the first. */
export async function readAccounts(
  db: Queryable,
  keys: SecretKeys,
  onLocked: (tenant: number, provider: string) => void,
): Promise<Account[]> {
  const accounts: Account[] = [];
  for (const row of await listCredentials(db)) {
    const { tenant, provider, sealed } = row;
    const plain = open(keys, placeOf(tenant, provider), sealed);
    if (plain === undefined) {
      onLocked(tenant, provider);
      continue;
    }
    accounts.push({ tenant, provider, settings: JSON.parse(plain) as Settings });
    if (isOldSeal(keys, sealed)) await resealCredentials(db, row, seal(keys, placeOf(tenant, provider), plain));
  }
  return accounts;
}
