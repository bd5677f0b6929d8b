// The part of the configuration that says whether deliveries are locked, and by what.

import { CHANNELS, type Channel } from "#domain/notification.ts";
import { shortly } from "./file.ts";

export const LOCKS = ["off", "postgres", "kubernetes"] as const;
export type LockKind = (typeof LOCKS)[number];

export type LockSettings = Readonly<
  | { kind: "off" }
  | { kind: "postgres"; channels: readonly Channel[] }
  | {
      kind: "kubernetes";
      channels: readonly Channel[];
      namespace: string;
      /** Undefined where the pod's name is not known; the host name then has to do. */
      identity: string | undefined;
    }
>;

export type LockFault = { key: string; expected: string; found: string };

/** What goes out to a service that limits or annoys all of us together. */
export const LOCKED_CHANNELS: readonly Channel[] = ["slack", "email", "webhook"];

type Environment = { [name: string]: string | undefined };
/** Kubernetes sets it in every pod. */
const IN_CLUSTER = "KUBERNETES_SERVICE_HOST";
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const readLocks = (given: unknown): LockKind | undefined => LOCKS.find((kind) => kind === given);

/** Channels: a list, or the same with commas. */
export function readLockedChannels(given: unknown): readonly Channel[] | undefined {
  const names = typeof given === "string" ? given.split(",").map((name) => name.trim()) : given;
  if (!Array.isArray(names) || names.length === 0) return undefined;
  const channels = CHANNELS.filter((channel) => names.includes(channel));
  return channels.length === new Set(names).size ? Object.freeze(channels) : undefined;
}

/**
 * USE_DISTRIBUTED_LOCKING is the switch, CARILLON_LOCKS says what to lock with. `false` switches off whatever else is
 * set; `true` without a kind takes Kubernetes in a pod and PostgreSQL elsewhere; absent, the kind alone decides.
 */
export function resolveLocks(
  kind: LockKind | undefined,
  channels: readonly Channel[] | undefined,
  env: Environment,
): { locks: LockSettings; faults: LockFault[] } {
  const faults: LockFault[] = [];
  const given = env.USE_DISTRIBUTED_LOCKING || undefined;
  const isOn = given === undefined ? undefined : given === "true";
  if (given !== undefined && given !== "true" && given !== "false") {
    faults.push({ key: "USE_DISTRIBUTED_LOCKING", expected: "true or false", found: shortly(given) });
  }
  if (isOn && kind === "off") {
    faults.push({ key: "CARILLON_LOCKS", expected: "postgres or kubernetes where locking is on", found: '"off"' });
  }
  const chosen = isOn === false ? "off" : (kind ?? (isOn ? (env[IN_CLUSTER] ? "kubernetes" : "postgres") : "off"));
  if (faults.length > 0 || chosen === "off") return { locks: { kind: "off" }, faults };
  const locked = channels ?? LOCKED_CHANNELS;
  if (chosen === "postgres") return { locks: { kind: "postgres", channels: locked }, faults };
  const namespace = env.POD_NAMESPACE ?? "";
  if (!NAMESPACE.test(namespace)) {
    const found = namespace ? shortly(namespace) : "none";
    faults.push({ key: "POD_NAMESPACE", expected: "the namespace in which Leases are kept", found });
  }
  return { locks: { kind: "kubernetes", channels: locked, namespace, identity: env.POD_NAME || undefined }, faults };
}
