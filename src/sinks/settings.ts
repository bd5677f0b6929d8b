// What each type of sink may be told. The configuration and the documentation go by these.

import { type Static, Type } from "typebox";
import { FACT_TYPES } from "#domain/fact.ts";
import { oneOf, strict } from "#domain/notification.ts";
import { brokers, maybe, secret, text } from "#wire/broker-settings.ts";

/** Facts of these types; all of them where it is not said. */
const types = maybe(Type.Array(oneOf(FACT_TYPES), { minItems: 1, maxItems: FACT_TYPES.length }));
const template = text(1024);

const identifier = Type.String({
  pattern: "^[A-Za-z_][A-Za-z0-9_]{0,62}$",
  "x-expects": "a name of letters, digits and _",
});

export const SINKS = {
  rabbitmq: strict({
    type: Type.Literal("rabbitmq"),
    types,
    /** amqp:// or amqps://, with user and password. */
    url: secret,
    ca: maybe(text(100_000)),
    /** Liquid over the fact; an empty exchange is the default one, which goes by the names of queues. */
    exchange: maybe(Type.String({ maxLength: 1024 })),
    routingKey: maybe(template),
  }),
  kafka: strict({ type: Type.Literal("kafka"), types, ...brokers, topic: text(249) }),
  clickhouse: strict({
    type: Type.Literal("clickhouse"),
    types,
    url: Type.String({ pattern: "^https?://[!-~]+$", maxLength: 2048, "x-expects": "an http or https URL" }),
    user: maybe(text(256)),
    password: maybe(secret),
    /** Of its tables and its view, which are made if need be; `carillon` and `facts` without it. */
    database: maybe(identifier),
    table: maybe(identifier),
    /** Kept for so long, where the server can. */
    days: maybe(Type.Integer({ minimum: 1, maximum: 36_500 })),
    /** What may tell who somebody is, and what cannot be forgotten for them afterwards: user ids; what providers say in words. */
    users: maybe(Type.Boolean()),
    errors: maybe(Type.Boolean()),
  }),
} as const;

export type SinkSettings = { [type in keyof typeof SINKS]: Static<(typeof SINKS)[type]> }[keyof typeof SINKS];
export type SettingsOfSink<type extends SinkSettings["type"]> = Extract<SinkSettings, { type: type }>;
