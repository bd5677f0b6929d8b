// What a worker takes, as people say it: by the names of lanes, channels, tenants and regions. What is left out is not restricted.

import type { Channel } from "./notification.ts";
import type { Priority } from "./priority.ts";

export type WorkerTakes = {
  lanes?: readonly Priority[];
  channels?: readonly Channel[];
  tenants?: readonly string[];
  /** What names no region is taken as well. */
  regions?: readonly string[];
};

/** Of a process that delivers nothing. */
export const NOTHING: WorkerTakes = { lanes: [] };

export const takesAll = (takes: WorkerTakes): boolean => Object.keys(takes).length === 0;

/** What waits together: of one tenant in one lane, over one channel and for one region. An unknown channel is everybody's. */
export type Flow = { lane: Priority; tenant: string; channel?: Channel; region?: string };

export function takes({ lanes, channels, tenants, regions }: WorkerTakes, flow: Flow): boolean {
  const { lane, channel, tenant, region } = flow;
  return (
    (lanes?.includes(lane) ?? true) &&
    (channel === undefined || (channels?.includes(channel) ?? true)) &&
    (tenants?.includes(tenant) ?? true) &&
    (region === undefined || (regions?.includes(region) ?? true))
  );
}
