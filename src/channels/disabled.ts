// Stands in for a tenant's own account that cannot be opened. The tenant's sends end with the reason: they must not go out in the
// deployment's name instead, and nobody else notices.

import type { Reply } from "#domain/attempt.ts";
import type { Provider } from "./channel.ts";

/**
 * For the deployment's provider of that name. What is sealed with a key that is not here may be opened by another replica, or
 * after a restart, so such sends are tried again. Settings that are wrong stay wrong until somebody changes them.
 */
export function disabledProvider(
  { channels, capabilities }: Provider,
  why: { isSealed: boolean; reason: string },
): Provider {
  const reason = `the tenant's own account is disabled: ${why.reason}`;
  const reply: Reply = {
    kind: why.isSealed ? "unavailable" : "rejected",
    reason,
    code: "ACCOUNT_DISABLED",
    category: "credentials",
  };
  return {
    name: "disabled",
    channels,
    capabilities: { ...capabilities, tracking: false },
    validate: () => [{ path: "", message: reason }],
    encode: () => reply,
    send: () => reply,
    check: async () => ({ healthy: false, detail: reason }),
  };
}
