// The service's part of the doctor: what it says of itself, and what only a key may see.

import type { Client } from "#client/client.ts";
import { VERSION } from "#config/version.ts";
import type { World } from "../command.ts";
import { type Finding, fail, ok, warn } from "./findings.ts";
import { lasting } from "./times.ts";

const PATIENCE_MS = 5_000;

type Health = { checks: { name: string; healthy: boolean; degraded?: boolean; detail: string }[] };

export async function examineService(world: World): Promise<Finding[]> {
  const url = await world.url();
  const [health, document] = await Promise.all([read<Health>(url, "/health"), read<Document>(url, "/openapi.json")]);
  if (!health?.checks)
    return [
      fail("service", `no Carillon answers at ${new URL(url).origin}`, "carillon start, or correct CARILLON_URL"),
    ];
  const parts = health.checks.map(({ name, healthy, degraded, detail }) => {
    if (!healthy) return fail(`/health ${name}`, detail, "see docs/operations.md");
    return degraded ? warn(`/health ${name}`, detail, "see docs/operations.md") : ok(`/health ${name}`, detail);
  });
  return [versionOf(document?.info?.version), ...parts, ...(await inside(world))];
}

type Document = { info?: { version?: string } };

function versionOf(version: string | undefined): Finding {
  if (version === VERSION) return ok("service", `Carillon ${version}, as this command line`);
  const detail = `Carillon ${version ?? "of an unknown version"}; this command line is ${VERSION}`;
  return warn("service", detail, "upgrade the one that is behind");
}

/** Whoever is asked may hang. */
async function read<Body>(url: string, path: string): Promise<Body | undefined> {
  try {
    const answer = await fetch(new URL(path, url), { signal: AbortSignal.timeout(PATIENCE_MS) });
    return (await answer.json()) as Body;
  } catch {
    return undefined;
  }
}

async function inside(world: World): Promise<Finding[]> {
  const client = await world.findClient();
  if (!client) return [warn("key", "providers and the queue were not looked at", "set CARILLON_API_KEY")];
  try {
    return [...(await providersOf(client)), await untakenOf(client), await ledgerOf(client)];
  } catch (error) {
    return [
      fail(
        "key",
        error instanceof Error ? error.message : String(error),
        "set CARILLON_API_KEY to a key that may read",
      ),
    ];
  }
}

async function providersOf(client: Client): Promise<Finding[]> {
  const { data } = await client.providers();
  const wrong = data.flatMap(({ name, health, paused, routes }) => {
    const what = `provider ${name}`;
    if (paused) return [warn(what, `paused: ${paused.reason}`, `carillon resume provider ${name}`)];
    if (health && !health.healthy && routes.length > 0)
      return [fail(what, health.detail, `carillon provider test ${name}`)];
    return [];
  });
  return wrong.length > 0 ? wrong : [ok("providers", `${data.length}, none paused or disabled`)];
}

async function untakenOf(client: Client): Promise<Finding> {
  const { untaken } = await client.queue();
  const [oldest] = [...untaken].sort((a, b) => b.oldestAgeMs - a.oldestAgeMs);
  if (!oldest) return ok("queue", "somebody takes all that waits");
  const { priority, channel, region, tenant, count, oldestAgeMs } = oldest;
  const which = [priority, channel, region, `of ${tenant}`].filter((word) => word !== undefined).join(" ");
  const detail = `${count} ${which} wait for ${lasting(oldestAgeMs)}, and no living worker takes them`;
  return fail("queue", detail, "start a worker that takes them, or resume what is paused");
}

async function ledgerOf(client: Client): Promise<Finding> {
  const { balanced, accepted, waiting } = await client.ledger();
  return balanced
    ? ok("ledger", `${accepted} accepted, ${waiting} of them waiting; it balances`)
    : fail("ledger", "does not balance", "keep what there is, and report it");
}
