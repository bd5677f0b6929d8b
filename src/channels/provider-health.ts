// How providers say they are.
//
// Asking one costs it and us a request: one at a time, which all who ask meanwhile share; and an answer is good for a while.
// State: who is being asked, and the last answers.

import type { Health, Provider } from "./channel.ts";

type Asking = (provider: Provider) => Promise<Health | undefined>;

export type ProviderHealth = {
  /** Now. Undefined where there is nothing to ask for. */
  ask: Asking;
  /** As it was a moment ago, if that is known. */
  recall: Asking;
};

const ASK_MS = 5_000;
const REMEMBER_MS = 30_000;

export function createProviderHealth(monotonic: () => number): ProviderHealth {
  const underWay = new WeakMap<Provider, Promise<Health | undefined>>();
  const known = new WeakMap<Provider, { untilMs: number; health: Promise<Health | undefined> }>();
  const ask: Asking = (provider) => {
    const asked = underWay.get(provider) ?? askOnce(provider).finally(() => underWay.delete(provider));
    underWay.set(provider, asked);
    return asked;
  };
  return {
    ask,
    recall(provider) {
      const found = known.get(provider);
      if (found && found.untilMs > monotonic()) return found.health;
      const health = ask(provider);
      known.set(provider, { untilMs: monotonic() + REMEMBER_MS, health });
      return health;
    },
  };
}

async function askOnce(provider: Provider): Promise<Health | undefined> {
  return provider.check?.(AbortSignal.timeout(ASK_MS)).catch((error: unknown) => ({
    healthy: false,
    detail: error instanceof Error ? error.message : String(error),
  }));
}
