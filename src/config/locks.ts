// The part of the configuration that says whether deliveries are locked, and by what.

import { CHANNELS, type Channel } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { misfit, shortly } from "./fault.ts";
import { type Environment, readSome, type SettingsOf } from "./setting.ts";

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

/** As it is written; resolveLocks() makes settings of it. */
export type LockingGiven = { locks: LockKind | undefined; lockChannels: readonly Channel[] | undefined };

export const LOCKING: SettingsOf<LockingGiven> = {
  locks: {
    env: "CARILLON_LOCKS",
    expected: `one of ${LOCKS.join(", ")}`,
    fallback: undefined,
    read: (given) => LOCKS.find((kind) => kind === given),
  },
  lockChannels: {
    env: "CARILLON_LOCK_CHANNELS",
    expected: "a list of channels",
    fallback: undefined,
    read: readSome(CHANNELS),
  },
};

/** What goes out to a service that limits or annoys all of us together. */
export const LOCKED_CHANNELS: readonly Channel[] = ["slack", "email", "webhook"];

/** Kubernetes sets it in every pod. */
const IN_CLUSTER = "KUBERNETES_SERVICE_HOST";
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * USE_DISTRIBUTED_LOCKING is the switch, CARILLON_LOCKS says what to lock with. `false` switches off whatever else is
 * set; `true` without a kind takes Kubernetes in a pod and PostgreSQL elsewhere; absent, the kind alone decides.
 */
export function resolveLocks(
  kind: LockKind | undefined,
  channels: readonly Channel[] | undefined,
  env: Environment,
): { locks: LockSettings; faults: Fault[] } {
  const faults: Fault[] = [];
  const given = env.USE_DISTRIBUTED_LOCKING || undefined;
  const isOn = given === undefined ? undefined : given === "true";
  if (given !== undefined && given !== "true" && given !== "false") {
    faults.push(misfit("USE_DISTRIBUTED_LOCKING", "true or false", shortly(given)));
  }
  if (isOn && kind === "off") {
    faults.push(misfit("CARILLON_LOCKS", "postgres or kubernetes where locking is on", '"off"'));
  }
  const chosen = isOn === false ? "off" : (kind ?? (isOn ? (env[IN_CLUSTER] ? "kubernetes" : "postgres") : "off"));
  if (faults.length > 0 || chosen === "off") return { locks: { kind: "off" }, faults };
  const locked = channels ?? LOCKED_CHANNELS;
  if (chosen === "postgres") return { locks: { kind: "postgres", channels: locked }, faults };
  const namespace = env.POD_NAMESPACE ?? "";
  if (!NAMESPACE.test(namespace)) {
    const found = namespace ? shortly(namespace) : "none";
    faults.push(misfit("POD_NAMESPACE", "the namespace in which Leases are kept", found));
  }
  return { locks: { kind: "kubernetes", channels: locked, namespace, identity: env.POD_NAME || undefined }, faults };
}
