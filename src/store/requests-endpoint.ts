// Every tenant's own endpoint, for the URLs that its requests name: made when it is first needed.

import { newSecrets, publicKeyOf, REQUESTS, sealSecrets } from "#domain/endpoint.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type EndpointRow, findEndpoint, insertEndpoint } from "./endpoints.ts";

/** Of replicas that ask together, one makes it and all are answered with it. */
export async function ensureRequestsEndpoint(db: Queryable, keys: SecretKeys, tenant: number): Promise<EndpointRow> {
  const found = await findEndpoint(db, tenant, REQUESTS);
  if (found) return found;
  const place = { tenant, id: REQUESTS };
  const secrets = newSecrets();
  const made = await insertEndpoint(db, {
    ...place,
    url: null,
    events: null,
    policy: "best_effort",
    fifo: null,
    rate: null,
    description: null,
    sealed: sealSecrets(keys, place, secrets),
    publicKey: publicKeyOf(secrets),
  });
  const kept = made ?? (await findEndpoint(db, tenant, REQUESTS));
  if (!kept) throw new Error(`the endpoint ${REQUESTS} of tenant ${tenant} could not be made`);
  return kept;
}
