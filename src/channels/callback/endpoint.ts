// An endpoint as a callback is sent to it. It stands apart from where it is looked up, as every message may have one.

import type { CallbackPolicy, EndpointState } from "#domain/endpoint.ts";
import type { Rate } from "#domain/gcra.ts";
import type { SigningKeys } from "#wire/standard-webhooks.ts";

export type Endpoint = {
  tenant: number;
  id: string;
  /** Null for the one of a tenant's requests, which name their own. */
  url: string | null;
  state: EndpointState;
  policy: CallbackPolicy;
  rate: Rate | null;
  /** Undefined where no secret key opens them. */
  keys: SigningKeys | undefined;
};
