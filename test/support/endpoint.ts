// An endpoint as a tenant would make it, and what it signs with.

import { newEndpointId, newSecrets, openSecrets, publicKeyOf, sealSecrets } from "#domain/endpoint.ts";
import { type EndpointSettings, findEndpoint, insertEndpoint } from "#store/endpoints.ts";
import type { Service } from "./service.ts";

export const SECRET_KEYS = [Buffer.alloc(32, 7)];

export async function makeEndpoint(
  { db }: Pick<Service, "db">,
  settings: Partial<EndpointSettings> & { url: string },
  tenant = 1,
): Promise<string> {
  const id = newEndpointId();
  const secrets = newSecrets();
  const given = {
    events: null,
    policy: "best_effort" as const,
    fifo: null,
    rate: null,
    description: null,
    ...settings,
  };
  const sealed = sealSecrets(SECRET_KEYS, { tenant, id }, secrets);
  await insertEndpoint(db, { ...given, tenant, id, sealed, publicKey: publicKeyOf(secrets) });
  return id;
}

export async function secretOf({ db }: Pick<Service, "db">, id: string, tenant = 1): Promise<string> {
  const row = await findEndpoint(db, tenant, id);
  const [secrets] = (row && openSecrets(SECRET_KEYS, row, new Date())) ?? [];
  if (!secrets) throw new Error(`no secrets of ${id}`);
  return secrets.secret;
}
