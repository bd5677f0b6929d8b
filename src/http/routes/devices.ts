// /v1/users/:userId/devices: where a user can be pushed to.

import { type Static, Type } from "typebox";
import { Instant, nameLine, oneOf, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";
import { UserId } from "#http/core/schemas.ts";
import { forgetDevice, registerDevice } from "#steps/manage/devices.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listDevices, type StoredDevice } from "#store/devices.ts";

const tag = "Devices";
const Token = nameLine(4096);
const Subscription = strict({
  endpoint: Type.String({ pattern: "^https://[!-~]+$", maxLength: 2048, "x-expects": "an https URL" }),
  keys: strict({ p256dh: Type.String({ maxLength: 256 }), auth: Type.String({ maxLength: 64 }) }),
  expirationTime: Type.Optional(Type.Unknown()),
});
const DeviceRequest = strict({
  platform: oneOf(["ios", "android", "web"]),
  subscription: Type.Optional(Subscription),
});
const DeviceBody = Type.Object({
  token: Token,
  platform: oneOf(["ios", "android", "web"]),
  active: Type.Boolean(),
  createdAt: Instant,
  updatedAt: Instant,
  deadAt: Type.Optional(Instant),
  deadReason: Type.Optional(Type.String()),
});

export function deviceRoutes({ db }: { db: Queryable }): Route[] {
  const params = strict({ userId: UserId, token: Token });

  const put = route({
    method: "PUT",
    path: "/v1/users/:userId/devices/:token",
    summary: "Register a device of a user",
    detail:
      "A push to the user goes to all active devices. For the platform `web` the browser's `subscription` is needed; " +
      "the token is then a name of your own, such as a hash of its endpoint.",
    tag,
    scope: "send",
    params,
    body: DeviceRequest,
    answers: { 200: { description: "Registered, and active", schema: DeviceBody } },
    async handle({ params: { userId, token }, body, actor }) {
      const subscription = subscriptionOf(body);
      const device = { token, platform: body.platform, ...(subscription && { subscription }) };
      return { status: 200, body: bodyOf(await registerDevice(db, actor, userId, device)) };
    },
  });

  const list = route({
    method: "GET",
    path: "/v1/users/:userId/devices",
    summary: "The devices of a user",
    tag,
    scope: "read",
    params: strict({ userId: UserId }),
    answers: { 200: { description: "All of them", schema: Type.Object({ data: Type.Array(DeviceBody) }) } },
    async handle({ params: { userId }, actor }) {
      return { status: 200, body: { data: (await listDevices(db, actor.tenant, userId)).map(bodyOf) } };
    },
  });

  const remove = route({
    method: "DELETE",
    path: "/v1/users/:userId/devices/:token",
    summary: "Forget a device",
    tag,
    scope: "send",
    params,
    answers: { 204: { description: "Nothing more is pushed to it" } },
    async handle({ params: { userId, token }, actor }) {
      if (!(await forgetDevice(db, actor, userId, token))) {
        throw new Problem("NOT_FOUND", "the user has no such device");
      }
      return { status: 204 };
    },
  });

  return [list, put, remove];
}

function subscriptionOf({ platform, subscription }: Static<typeof DeviceRequest>) {
  if ((platform === "web") !== (subscription !== undefined)) {
    const message = platform === "web" ? "is required for web" : "is for the platform web only";
    throw invalid([{ path: "/subscription", message }]);
  }
  return subscription && { endpoint: subscription.endpoint, keys: subscription.keys };
}

const bodyOf = ({ token, platform, createdAt, updatedAt, deadAt, deadReason }: StoredDevice) => ({
  token,
  platform,
  active: deadAt === null,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
  ...(deadAt && { deadAt: deadAt.toISOString() }),
  ...(deadReason !== null && { deadReason }),
});
