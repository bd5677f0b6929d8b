// A fact as a CloudEvent 1.0, in binary mode: attributes beside, the data as the body. Where the attributes go is a matter of each protocol.

import type { Told } from "./sink.ts";

export type CloudEvent = { attributes: { readonly [name: string]: string }; data: string };

export const CONTENT_TYPE = "application/json";

/** The same for a fact however often it is told. `tenant` is an extension. */
export function cloudEventOf({ fact, tenant, body }: Told): CloudEvent {
  return {
    attributes: {
      specversion: "1.0",
      id: body.id,
      source: `/carillon/tenants/${tenant}`,
      type: `carillon.${fact.type}`,
      subject: fact.notificationId,
      time: body.at,
      tenant,
    },
    data: JSON.stringify(body),
  };
}
