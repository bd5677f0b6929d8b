// Finds the devices of every push in a claim, with one query for all of them.

import type { Claimed } from "#domain/attempt.ts";
import type { Queryable } from "#store/connection/database.ts";
import { activeDevicesOf, devicesNamed } from "#store/devices.ts";
import type { Findings } from "./prepare.ts";

type Push = Claimed & Pick<Findings, "devices">;

/** Undefined when there is no push among them. */
export function findDevices(attempts: readonly Push[], db: Queryable): Promise<void> | undefined {
  const pushes = attempts.filter(({ request }) => request.channel === "push");
  return pushes.length > 0 ? find(pushes, db) : undefined;
}

async function find(pushes: readonly Push[], db: Queryable): Promise<void> {
  const named = pushes.filter(({ request }) => request.recipient?.deviceTokens);
  const byUser = pushes.filter(({ request }) => !request.recipient?.deviceTokens);
  if (named.length > 0) {
    const wanted = named.flatMap(({ tenant, request }) =>
      (request.recipient?.deviceTokens ?? []).map((token) => ({ tenant, token })),
    );
    const known = await devicesNamed(db, wanted);
    for (const attempt of named) {
      const tokens = new Set(attempt.request.recipient?.deviceTokens);
      // A token that nobody registered is taken for Android's.
      attempt.devices = [...tokens].map(
        (token) => known.get(`${attempt.tenant} ${token}`) ?? { token, platform: "android" },
      );
    }
  }
  if (byUser.length > 0) {
    const users = byUser.map(({ tenant, request }) => ({ tenant, userId: request.recipient?.userId ?? "" }));
    const known = await activeDevicesOf(db, users);
    for (const attempt of byUser) {
      attempt.devices = known.get(`${attempt.tenant} ${attempt.request.recipient?.userId ?? ""}`) ?? [];
    }
  }
}
