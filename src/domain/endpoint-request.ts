// What a tenant says of an endpoint, and every fault of it.

import { type Static, Type } from "typebox";
import { FIFO_KEYS, POLICIES, REQUESTS } from "./endpoint.ts";
import { FACT_TYPES } from "./fact.ts";
import { PERIODS } from "./gcra.ts";
import { oneOf, strict, Url } from "./notification.ts";
import type { Fault } from "./problems.ts";
import { type Check, compile, storableFaults } from "./validate.ts";

export const Events = Type.Array(oneOf(FACT_TYPES), { minItems: 1, maxItems: FACT_TYPES.length });
const Rate = strict({ per: oneOf(PERIODS), most: Type.Integer({ minimum: 1, maximum: 1_000_000 }) });
const Description = Type.String({ minLength: 1, maxLength: 500 });
const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

export const EndpointRequest = strict({
  url: Url,
  events: Type.Optional(Events),
  policy: Type.Optional(oneOf(POLICIES)),
  fifo: Type.Optional(oneOf(FIFO_KEYS)),
  rate: Type.Optional(Rate),
  description: Type.Optional(Description),
});
export type EndpointRequest = Static<typeof EndpointRequest>;

/** What is not named stays; null takes back what was said. */
export const EndpointChange = Type.Object(
  {
    url: Type.Optional(Url),
    events: orNull(Events),
    policy: Type.Optional(oneOf(POLICIES)),
    fifo: orNull(oneOf(FIFO_KEYS)),
    rate: orNull(Rate),
    description: orNull(Description),
  },
  { additionalProperties: false, minProperties: 1 },
);
export type EndpointChange = Static<typeof EndpointChange>;

export type RefusalOf = (url: string) => string | undefined;

const checkRequest = compile(EndpointRequest);
const checkChange = compile(EndpointChange);

export const faultsOfEndpoint = (given: unknown, refusalOf: RefusalOf): Fault[] =>
  faultsOf(given, checkRequest, refusalOf);

export function faultsOfChange(id: string, given: unknown, refusalOf: RefusalOf): Fault[] {
  const faults = faultsOf(given, checkChange, refusalOf);
  if (id !== REQUESTS || typeof given !== "object" || given === null) return faults;
  const named = ["url", "events"].filter((name) => Object.hasOwn(given, name));
  return [...faults, ...named.map((name) => ({ path: `/${name}`, message: "is what each request says itself" }))];
}

function faultsOf(given: unknown, check: Check, refusalOf: RefusalOf): Fault[] {
  const faults = storableFaults(given);
  if (faults.length > 0) return faults;
  return [...check(given), ...faultsOfUrl((given as { url?: unknown } | null)?.url, refusalOf)];
}

/** What can be known of it before anybody looks its name up. */
export function faultsOfUrl(url: unknown, refusalOf: RefusalOf): Fault[] {
  if (typeof url !== "string" || !/^https?:/.test(url)) return [];
  const refusal = refusalOf(url);
  return refusal === undefined ? [] : [{ path: "/url", message: `is refused: ${refusal}` }];
}
