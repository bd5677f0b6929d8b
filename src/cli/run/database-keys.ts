// Keys straight in the database, for whoever has none that lets them ask.

import type { Client, Key } from "#client/client.ts";
import { Problem } from "#domain/problems.ts";
import { makeKey, revokeKey } from "#steps/manage/keys.ts";
import { listKeys, type StoredKey } from "#store/keys.ts";
import { EXIT, Failure, type World } from "../command.ts";
import { withDatabase } from "./join-database.ts";
import { osUser } from "./os-user.ts";

/** `command` is what the audit log says of it. */
export function databaseKeys(world: World, command: string): Client["keys"] {
  const actor = { kind: "command-line", command, user: osUser() } as const;
  return {
    list: () => withDatabase(world, async ({ own }) => ({ data: (await listKeys(own, undefined)).map(keyOf) })),
    create: (request) =>
      withDatabase(world, async ({ own: pool }) => {
        const made = await makeKey({ pool, now: () => new Date() }, actor, request);
        if (made instanceof Problem) throw new Failure(made.message, EXIT.refused);
        const { createdAt, expiresAt, ...key } = made;
        return { ...key, createdAt: createdAt.toISOString(), ...(expiresAt && { expiresAt: expiresAt.toISOString() }) };
      }),
    revoke: (id) =>
      withDatabase(world, async ({ own: pool }) => {
        const outcome = await revokeKey({ pool, hasFixedKey: false, forget: () => {} }, actor, id);
        if (outcome !== "revoked") throw new Failure(`there is no key ${id}, or it was revoked before`, EXIT.notFound);
      }),
  };
}

function keyOf({ id, tenantName, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt }: StoredKey): Key {
  return {
    id,
    tenant: tenantName,
    name,
    scopes: scopes as Key["scopes"],
    createdAt: createdAt.toISOString(),
    ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    ...(revokedAt && { revokedAt: revokedAt.toISOString() }),
    ...(lastUsedAt && { lastUsedAt: lastUsedAt.toISOString() }),
  };
}
