// GET /v1/inbox/:userId/stream: what comes into an inbox, as it comes (server-sent events).

import { Type } from "typebox";
import { type Position, readPosition } from "#domain/inbox.ts";
import { strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import type { Hub } from "#inbox/hub.ts";
import type { Acknowledge } from "#steps/manage/acknowledge.ts";
import { inboxAsked, inboxTag, OfUser } from "./inbox.ts";

// What proxies must not do to it: keep, compress or collect it.
export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  // When it ends, the next one shall be free to go to another replica.
  connection: "close",
};

export type StreamOptions = {
  hub: Hub;
  acknowledge: Acknowledge;
  onError: (error: unknown) => void;
};

/** What was never a position of ours cannot be resumed from: the client is told so, and begins anew. */
const NOWHERE: Position = { epoch: -1, seq: 0 };

export function inboxStreamRoutes({ hub, acknowledge, onError }: StreamOptions): Route[] {
  const stream = route({
    method: "GET",
    path: "/v1/inbox/:userId/stream",
    summary: "What comes into an inbox, as it comes",
    detail:
      "Events: `notification` (an item, with an id), `unread` (a count), `reset` (what was missed cannot be told: load the " +
      "list). `Last-Event-ID`, or `?after=` with an id or the `position` of a list, resumes without a gap. Without either " +
      "it begins now. A comment comes every 25 seconds. It ends after about ten minutes, and when the token expires: come back.",
    tag: inboxTag,
    scope: "read",
    // The hub asks for one when it reads.
    turn: "none",
    isForSubscribers: true,
    params: OfUser,
    query: strict({ after: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) }),
    headers: Type.Object({ "Last-Event-ID": Type.Optional(Type.String()) }),
    answers: { 200: { description: "Events", mediaType: "text/event-stream" } },
    async handle({ params, query: { after }, header, actor }) {
      const inbox = inboxAsked(actor, params);
      // A browser that reconnects repeats the URL it began with; how far it came since is in the header.
      const lastEventId = header("last-event-id") || undefined;
      const given = lastEventId ?? after;
      const from = given === undefined ? undefined : (readPosition(given) ?? NOWHERE);
      const reader = hub.admit(inbox, actor.kind === "user" ? actor.expiresAtMs : Number.POSITIVE_INFINITY);
      try {
        const first = await hub.begin(reader, from);
        // Whoever comes back for what follows has what came before.
        if (lastEventId !== undefined && from && from.epoch === reader.position.epoch) {
          acknowledge(actor, params.userId, { verb: "position", seq: from.seq }).catch(onError);
        }
        return { status: 200, headers: STREAM_HEADERS, stream: (out) => hub.open(reader, out, first) };
      } catch (error) {
        hub.leave(reader);
        throw error;
      }
    },
  });
  return [stream];
}
