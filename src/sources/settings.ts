// What each type of source may be told. The configuration and the documentation go by these.

import { type Static, Type } from "typebox";
import { strict } from "#domain/notification.ts";
import { brokers, maybe, text } from "#wire/broker-settings.ts";

export const SOURCES = {
  kafka: strict({
    type: Type.Literal("kafka"),
    ...brokers,
    topic: text(249),
    /** Shared by all replicas; `carillon-` and the source's name where it is not said. */
    group: maybe(text(249)),
    /** Whose the requests are that name none. Undefined: those are refused. */
    tenant: maybe(text(128)),
    /** Whether a message's header may name the tenant. */
    tenantHeader: maybe(Type.Boolean()),
    /** What is refused goes here, too. */
    refusals: maybe(text(249)),
    /** Where to begin on a partition of which nothing was kept. */
    from: maybe(Type.Union([Type.Literal("earliest"), Type.Literal("latest")])),
  }),
} as const;

export type SourceSettings = { [type in keyof typeof SOURCES]: Static<(typeof SOURCES)[type]> }[keyof typeof SOURCES];
export type SettingsOfSource<type extends SourceSettings["type"]> = Extract<SourceSettings, { type: type }>;
