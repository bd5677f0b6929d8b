// /v1/dev/messages/:id: one message of the mailbox, as it would have gone over the wire, and the parts of it that a browser saves.
//
// What it says comes from strangers: bytes of it are saved by a browser and never shown by their own word for what they are, and nothing that it names is fetched by us.

import { type Static, Type } from "typebox";
import { strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { type DevWorld, forgetDevMessage } from "#steps/manage/dev-messages.ts";
import { findDevMessage, type WholeDevMessage } from "#store/dev-messages.ts";
import { bodyOfKept, DEV_TAG, KeptBody, MessageId } from "./dev.ts";

const WireBody = Type.Object({
  as: Type.String({
    description: "Whose way of writing it is: smtp, twilio, fcm, apns, webpush, slack, webhook, inbox, console or file",
  }),
  type: Type.String(),
  body: Type.String(),
  attempt: Type.Integer(),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  url: Type.Optional(Type.String()),
  mail: Type.Optional(
    Type.Object({
      from: Type.String(),
      to: Type.Array(Type.String()),
      cc: Type.Array(Type.String()),
      bcc: Type.Array(Type.String()),
      replyTo: Type.Optional(Type.String()),
      subject: Type.String(),
      text: Type.String(),
      headers: Type.Record(Type.String(), Type.String()),
      messageId: Type.String(),
    }),
  ),
  sms: Type.Optional(Type.Object({ encoding: Type.String(), segments: Type.Integer(), characters: Type.Integer() })),
});
const WholeBody = Type.Interface([KeptBody], { wire: Type.Optional(WireBody) });
export type WireBody = Static<typeof WireBody>;
export type WholeBody = Static<typeof WholeBody>;

const params = strict({ id: MessageId });

const SANDBOX = "sandbox; default-src 'none'";

export const devMessageRoutes = (world: DevWorld): Route[] => [
  whole(world),
  source(world),
  attachment(world),
  forget(world),
];

async function messageOf({ pool }: DevWorld, tenant: number, id: string): Promise<WholeDevMessage> {
  const found = await findDevMessage(pool, tenant, id);
  if (!found) throw new Problem("NOT_FOUND", `there is no message ${id}`);
  return found;
}

const whole = (world: DevWorld): Route =>
  route({
    method: "GET",
    path: "/v1/dev/messages/:id",
    summary: "One message of the mailbox, as it would have gone over the wire",
    detail:
      "`wire` is what the channel's own provider would have sent: the source of a mail, a signed webhook, a push payload.",
    tag: DEV_TAG,
    scope: "read",
    params,
    answers: { 200: { description: "The message", schema: WholeBody } },
    async handle({ params: { id }, actor: { tenant } }) {
      const found = await messageOf(world, tenant, id);
      return { status: 200, body: { ...bodyOfKept(found), ...(found.wire && { wire: found.wire }) } };
    },
  });

const source = (world: DevWorld): Route =>
  route({
    method: "GET",
    path: "/v1/dev/messages/:id/source",
    summary: "The bytes of a kept message, to be saved",
    tag: DEV_TAG,
    scope: "read",
    params,
    answers: { 200: { description: "The bytes", mediaType: "application/octet-stream", schema: Type.String() } },
    async handle({ params: { id }, actor: { tenant } }) {
      const wire = (await messageOf(world, tenant, id)).wire as WireBody | null;
      if (!wire) throw new Problem("NOT_FOUND", "an older release kept the message, without its source");
      return saved(wire.as === "smtp" ? `${id}.eml` : `${id}.txt`, Buffer.from(wire.body));
    },
  });

const attachment = (world: DevWorld): Route =>
  route({
    method: "GET",
    path: "/v1/dev/messages/:id/attachments/:index",
    summary: "An attachment of a kept mail, to be saved",
    tag: DEV_TAG,
    scope: "read",
    params: strict({ id: MessageId, index: Type.String({ pattern: "^[0-9]{1,3}$", "x-expects": "0 for the first" }) }),
    answers: { 200: { description: "The bytes", mediaType: "application/octet-stream", schema: Type.String() } },
    async handle({ params: { id, index }, actor: { tenant } }) {
      const { message } = await messageOf(world, tenant, id);
      const found = message.content.attachments?.[Number(index)];
      if (!found) throw new Problem("NOT_FOUND", `the message has no attachment ${index}`);
      return saved(found.filename, Buffer.from(found.content, "base64"));
    },
  });

const forget = (world: DevWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/dev/messages/:id",
    summary: "Forget one kept message",
    tag: DEV_TAG,
    scope: "send",
    params,
    answers: { 204: { description: "It is gone" } },
    async handle({ params: { id }, actor }) {
      orThrow(await forgetDevMessage(world, actor, id));
      return { status: 204 };
    },
  });

/** Whatever it claims to be, a browser saves it and does not look into it. */
const saved = (filename: string, body: Buffer) => ({
  status: 200,
  headers: {
    "content-type": "application/octet-stream",
    "content-disposition": `attachment; filename="${plain(filename)}"; filename*=UTF-8''${encoded(filename)}`,
    "content-security-policy": SANDBOX,
  },
  body,
});

const plain = (name: string): string => name.replaceAll(/[^\w.-]/g, "_").slice(-100) || "attachment";
const encoded = (name: string): string =>
  encodeURIComponent(name.slice(-100).toWellFormed()).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
