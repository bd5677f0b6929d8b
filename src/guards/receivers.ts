// What is kept of tenants' receivers: the servers behind the URLs that tenants give, each by its tenant and origin.
//
// A tenant can name as many as it likes. So there are so many in all, and when there are more, whoever has most of them gives
// up the one that was used least recently: what a tenant names costs no other anything. State: the values, by tenant.

import type { Message, Provider } from "#channels/channel.ts";

/** No host name of the DNS is longer, and what is no name leads nowhere. */
const MOST_ORIGIN = 280;

/** Whom a message goes through: an account, or one tenant's receiver. */
export type Way = { account: string /** Of a receiver only. */; tenant?: number };

/** What says where a message goes. */
export type To = Pick<Message, "tenant" | "request" | "device" | "endpoint">;

export function wayOf(provider: Provider, message: To, accountOf: (provider: Provider) => string): Way {
  const origin = provider.receiver?.(message);
  if (origin === undefined) return { account: accountOf(provider) };
  const { tenant } = message;
  return { account: receiversOf(provider.name, tenant) + origin.slice(0, MOST_ORIGIN), tenant };
}

/** What the accounts of a tenant's receivers begin with. */
export const receiversOf = (provider: string, tenant: number): string => `${provider}@${tenant} `;

export type Shares<Value> = {
  /** Makes it where there is none. */
  use(tenant: number, key: string, make: () => Value): Value;
  find(tenant: number, key: string): Value | undefined;
  all(): Iterable<Value>;
};

/** `isInUse`: stays, however many there are. */
export function createShares<Value>(most: number, isInUse: (value: Value) => boolean): Shares<Value> {
  const tenants = new Map<number, Map<string, Value>>();
  let size = 0;

  function giveUpOne(): void {
    const [tenant, values] = [...tenants].reduce((one, other) => (other[1].size > one[1].size ? other : one));
    for (const [key, value] of values) {
      if (isInUse(value)) continue;
      values.delete(key);
      size--;
      if (values.size === 0) tenants.delete(tenant);
      return;
    }
  }

  return {
    use(tenant, key, make) {
      let value = tenants.get(tenant)?.get(key);
      if (value === undefined) {
        value = make();
        if (size >= most) giveUpOne();
        size++;
      }
      let values = tenants.get(tenant);
      if (!values) {
        values = new Map();
        tenants.set(tenant, values);
      }
      // Last in the order of the map: used most recently.
      values.delete(key);
      values.set(key, value);
      return value;
    },
    find: (tenant, key) => tenants.get(tenant)?.get(key),
    *all() {
      for (const values of tenants.values()) yield* values.values();
    },
  };
}
