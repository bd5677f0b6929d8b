// The way that a send begins with: through the first provider of its route, for push to the first device. What goes on from there,
// to another provider or the other devices, passes their guards inside the send.
// A provider of somebody's own making may throw when asked where it goes; then its send will too, and fails alone.

import type { Passage } from "#guards/passage.ts";
import type { Prepared } from "./prepare.ts";
import { serving } from "./push.ts";
import type { World } from "./world.ts";

export function firstWay(
  prepared: Prepared,
  { providers, guard }: Pick<World, "providers" | "guard">,
): Passage | undefined {
  try {
    const { tenant, request, devices } = prepared;
    const route = providers.route(request.channel, tenant);
    const device = devices?.[0];
    const first = device ? serving(device, route)[0] : route[0];
    return first && guard.passage(first, device ? { tenant, request, device } : prepared);
  } catch {
    return undefined;
  }
}
