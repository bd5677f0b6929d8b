// Tenants' own accounts with providers: sealed when kept, opened when read.

import type { OwnAccount } from "#channels/providers.ts";
import type { Settings } from "#channels/settings.ts";
import { isOldSeal, open, type SecretKeys, seal } from "#domain/sealed.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listCredentials, putCredentials, resealCredentials } from "#store/credentials.ts";

const placeOf = (tenant: number, provider: string): string => `${tenant} ${provider}`;

export function keepAccount(
  db: Queryable,
  keys: SecretKeys,
  { tenant, provider, settings }: OwnAccount & { settings: Settings },
): Promise<void> {
  return putCredentials(db, tenant, provider, seal(keys, placeOf(tenant, provider), JSON.stringify(settings)));
}

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
