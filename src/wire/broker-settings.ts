// What sources and sinks are told about servers in the same words.

import { type Static, Type } from "typebox";
import { oneOf, strict } from "#domain/notification.ts";

export const maybe = Type.Optional;
export const text = (maxLength = 4096) => Type.String({ minLength: 1, maxLength });
export const secret = text();

/** How a Kafka cluster is reached. */
export const brokers = {
  brokers: Type.Array(
    Type.String({ pattern: "^[\\w.-]+:\\d{1,5}$|^\\[[\\da-fA-F:.]+\\]:\\d{1,5}$", "x-expects": "host:port" }),
    { minItems: 1, maxItems: 100 },
  ),
  clientId: maybe(text(249)),
  tls: maybe(
    Type.Union([
      Type.Boolean(),
      strict({ ca: maybe(text(100_000)), cert: maybe(text(100_000)), key: maybe(text(100_000)) }),
    ]),
  ),
  sasl: maybe(
    strict({ mechanism: oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]), username: text(256), password: secret }),
  ),
};

const Brokers = Type.Object(brokers);
export type Brokers = Static<typeof Brokers>;
