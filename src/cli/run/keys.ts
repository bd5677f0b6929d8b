// carillon key …: who may ask. With a key it asks the service; without one it goes to the database, past the service, which may run meanwhile
// or not. So whoever has lost every key, and can reach the database, makes another.

import type { Client, Key, KeyRequest } from "#client/client.ts";
import type { Scope } from "#domain/api-key.ts";
import { SCOPES } from "#domain/api-key.ts";
import { type Call, EXIT, Failure, type Run, type World } from "../command.ts";
import { definedOf, listed, said } from "./lines.ts";

type Keys = Client["keys"];

/** The same by both ways. */
async function keysFor(call: Call, world: World, command: string): Promise<{ keys: Keys; isDatabase: boolean }> {
  const client = call.flags.has("database") ? undefined : await world.findClient();
  if (client) return { keys: client.keys, isDatabase: false };
  return { keys: (await import("./database-keys.ts")).databaseKeys(world, command), isDatabase: true };
}

export const listKeys: Run = async (call, world) => {
  const { keys } = await keysFor(call, world, "key ls");
  return listed((await keys.list()).data, lineOf);
};

export const makeKey: Run = async (call, world) => {
  const { name = "", scopes: words = "", tenant, expires } = call.options;
  const scopes = words.split(",") as Scope[];
  const unknown = scopes.find((scope) => !SCOPES.includes(scope));
  if (unknown !== undefined) {
    throw new Failure(`--scopes must be some of ${SCOPES.join(", ")}, with commas; not ${unknown}`, EXIT.usage);
  }
  const request: KeyRequest = { name, scopes, ...definedOf({ tenant, expiresAt: expires }) };
  const { keys } = await keysFor(call, world, "key make");
  const made = await keys.create(request);
  return said(`key, shown only this once: ${made.key}`, made);
};

export const revokeKey: Run = async (call, world) => {
  const [id = ""] = call.args;
  const { keys, isDatabase } = await keysFor(call, world, "key revoke");
  await keys.revoke(id);
  const when = isDatabase ? ": a service that runs refuses it within five seconds" : "";
  return said(`${id} is revoked${when}`, { id, revoked: true });
};

function lineOf({ id, tenant, name, scopes, createdAt, lastUsedAt, revokedAt, expiresAt }: Key): string {
  const isOver = expiresAt !== undefined && Date.parse(expiresAt) < Date.now();
  const state = revokedAt ? `revoked ${revokedAt}` : expiresAt ? `${isOver ? "expired" : "expires"} ${expiresAt}` : "";
  const used = lastUsedAt ? `used ${lastUsedAt}` : "never used";
  return [id, tenant, scopes.join(","), name, `made ${createdAt}`, used, state]
    .filter((cell) => cell !== "")
    .join("  ");
}
