// An engine without a database passes the suite of all engines: the contract is the whole seam.

import type { NotificationRequest } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";
import { queueConformance } from "../conformance/queue.ts";
import { createMemoryQueue } from "./memory.ts";

/** Nobody asks it anything. */
const NO_DATABASE = {
  query() {
    throw new Error("there is no database");
  },
} as unknown as Queryable;

queueConformance("memory", async () => {
  const { queue, find, offer, tenant, clear } = createMemoryQueue();
  return {
    queue,
    another: queue,
    db: NO_DATABASE,
    pool: NO_DATABASE as never,
    async enqueue(lanes, more = {}, tenant = 1) {
      return lanes.map((priority) =>
        offer({ channel: "console", content: { body: "b" }, priority, ...more } as NotificationRequest, tenant),
      );
    },
    tenant: async (name, weight = 1) => tenant(name, weight),
    async look(id) {
      const { status = "unknown", outcomes = [] } = find(id) ?? {};
      return {
        status,
        outcomes: outcomes.map(({ outcome }) => outcome),
        attempts: outcomes.map(({ attempt }) => attempt),
      };
    },
    postponements: async (id) => find(id)?.postponed ?? 0,
    clear: async () => clear(),
    stop: async () => undefined,
  };
});
