// Devices of users: registered by the application, and forgotten by it.

import type { KeyActor } from "#domain/actor.ts";
import type { Device } from "#domain/device.ts";
import type { Queryable } from "#store/connection/database.ts";
import { deleteDevice, putDevice, type StoredDevice } from "#store/devices.ts";

export const registerDevice = (db: Queryable, actor: KeyActor, userId: string, device: Device): Promise<StoredDevice> =>
  putDevice(db, actor.tenant, userId, device);

/** False when the user has no such device. */
export const forgetDevice = (db: Queryable, actor: KeyActor, userId: string, token: string): Promise<boolean> =>
  deleteDevice(db, actor.tenant, userId, token);
