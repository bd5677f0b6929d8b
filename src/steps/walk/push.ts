// One notification to all devices of a user, each by the first provider of the route that serves its platform.
//
// Devices stand or fall one by one. What was accepted is in the record of the attempt, so that the next attempt goes to
// the others only. A token that the provider calls dead is deactivated at once. A device whose turn comes too late is not sent to.

import type { Device, Message, Provider, SendOptions } from "#channels/channel.ts";
import { type Late, type Postponed, type Reply, sooner } from "#domain/attempt.ts";
import { cut } from "#domain/text.ts";
import type { Guard, Turn } from "#guards/guard.ts";
import { deactivateDevice, settledDevices } from "#store/devices.ts";
import { type Carried, carry } from "./carry.ts";
import { UNSAID } from "./settle.ts";
import type { World } from "./world.ts";

export type DeviceResult = { token: string; outcome: Reply["kind"]; provider?: string; reason?: string; code?: string };

type PushWorld = Pick<World, "db" | "facts">;

const ABREAST = 20;
/** However long the guards of some devices ask for, those devices are tried again by then. */
const MOST_AWAY_MS = 60_000;
const UNREAD: Reply = { kind: "unavailable", reason: "which devices have it already cannot be read" };

export async function pushAll(
  message: Message,
  devices: readonly Device[],
  providers: readonly Provider[],
  options: SendOptions,
  world: PushWorld,
  guard: Guard,
  turn: Turn,
): Promise<Carried & { devices: DeviceResult[] }> {
  const before = message.attempt > 1 ? await reachedBefore(message.notificationId, world) : new Map<string, never>();
  if (!before) return { outcome: UNREAD, provider: undefined, passedOver: [], devices: [] };
  const open = devices.filter(({ token }) => !before.has(token));
  const results: DeviceResult[] = [];
  let held: Postponed | undefined;
  let silent: Provider | undefined;
  let late: Late | undefined;
  let last: Carried | undefined;
  let next = 0;
  const beginBy = performance.now() + options.timeoutMs;
  const line = async () => {
    for (let device = open[next++]; device; device = open[next++]) {
      if (performance.now() > beginBy) {
        results.push({ token: device.token, outcome: "unavailable", reason: "the devices before it took too long" });
        continue;
      }
      const carried = await carry({ ...message, device }, serving(device, providers), options, guard, turn);
      const { outcome } = carried;
      if (outcome.kind === "expired" || outcome.kind === "released") {
        late = outcome;
        return;
      }
      if (outcome.kind === "postponed") {
        // The others may go another way.
        held = held ? sooner(held, outcome) : outcome;
        silent = carried.provider;
        continue;
      }
      last = carried;
      results.push(resultOf(device, outcome, carried.provider));
      if (outcome.kind === "dead-recipient") await deactivate(message.tenant, device.token, outcome.reason, world);
    }
  };
  await Promise.all(Array.from({ length: Math.min(ABREAST, open.length) }, line));
  // Nothing went out: the attempt is given back. If something did, the record of this attempt must say so.
  const left = late ?? held;
  if (left && results.length === 0) {
    const isPartly = left.kind === "postponed" && [...before.values()].includes("accepted");
    const outcome = isPartly ? { ...left, isPartly } : left;
    return { outcome, provider: late ? undefined : silent, passedOver: [], devices: [] };
  }
  return {
    outcome: together(results, [...before.values()], devices.length, left),
    provider: last?.provider,
    passedOver: [],
    devices: results,
    message: last?.message,
  };
}

/** What earlier attempts came to, for each token that is settled. Undefined where that cannot be read now. */
async function reachedBefore(notificationId: string, { db, facts }: PushWorld) {
  try {
    return await settledDevices(db, notificationId);
  } catch (error) {
    return facts.unread(error);
  }
}

/** Never rejects: a token that stays is found dead again, but what came of the others is known only here. */
const deactivate = (tenant: number, token: string, reason: string, { db, facts }: PushWorld): Promise<void> =>
  deactivateDevice(db, tenant, token, reason)
    .catch(() => deactivateDevice(db, tenant, token, UNSAID))
    .catch((error: unknown) => facts.deviceUnmarked(error));

/** Who may be asked to reach it, in order of preference. */
export const serving = ({ platform }: Device, providers: readonly Provider[]): Provider[] =>
  providers.filter(({ capabilities: { platforms } }) => platforms === undefined || platforms.includes(platform));

function resultOf({ token }: Device, reply: Reply, provider: Provider | undefined): DeviceResult {
  return {
    token,
    outcome: reply.kind,
    ...(provider && { provider: provider.name }),
    ...("reason" in reply && { reason: cut(reply.reason, 300) }),
    ...("code" in reply && reply.code !== undefined && { code: reply.code }),
  };
}

/**
 * What the devices' answers amount to. As long as one may still be reached, the whole is tried again for it. Only then does
 * it count that any of them was reached. For whom it came after its expiry there is no next time.
 */
function together(
  results: readonly DeviceResult[],
  earlier: readonly Reply["kind"][],
  devices: number,
  left: Postponed | Late | undefined,
): Reply {
  const told = (reason: string) => `${reason} (${results.length} of ${devices} devices tried)`;
  const first = (kind: Reply["kind"]) => results.find(({ outcome }) => outcome === kind);
  const isReached = first("accepted") !== undefined || earlier.includes("accepted");
  if (devices === 0) return { kind: "rejected", reason: "the user has no active device", category: "recipient" };
  const ambiguous = first("ambiguous");
  if (ambiguous) return { kind: "ambiguous", reason: told(ambiguous.reason ?? "no answer") };
  if (left?.kind === "postponed") {
    // What is left of it then waits by itself, without spending more.
    const retryAfterMs = Math.min(MOST_AWAY_MS, left.waitMs);
    return { kind: "limited", reason: told(left.reason), retryAfterMs, isPartly: isReached };
  }
  if (left?.kind === "released") return { kind: "limited", reason: told("its lease was ending"), isPartly: isReached };
  const limited = first("limited");
  if (limited) return { kind: "limited", reason: told(limited.reason ?? "limited"), isPartly: isReached };
  const away = first("unavailable");
  if (away) return { kind: "unavailable", reason: told(away.reason ?? "unavailable"), isPartly: isReached };
  if (isReached) return { kind: "accepted" };
  const dead = first("dead-recipient");
  if (dead) return { kind: "dead-recipient", reason: told(dead.reason ?? "dead"), category: "recipient" };
  return { kind: "rejected", reason: told(first("rejected")?.reason ?? "rejected") };
}
