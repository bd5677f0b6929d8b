// Commands for callbacks, asked of a running Carillon.

import type { Command, Option } from "../command.ts";
import { REASON, SINCE, UNTIL } from "./words.ts";

const ID = [{ name: "ID" }];
const SAID: { [name: string]: Option } = {
  events: { value: "a,b", help: "what it is told of; all unless it is said" },
  policy: { value: "POLICY", help: "how long it is tried", words: ["best_effort", "aggressive", "persistent"] },
  fifo: { value: "WHAT", help: "what is kept in order", words: ["notification", "user", "endpoint"] },
};

export const CALLBACKS: readonly Command[] = [
  { name: "endpoint ls", help: "endpoints", load: async () => (await import("../run/endpoints.ts")).listEndpoints },
  {
    name: "endpoint show",
    help: "one",
    arguments: ID,
    load: async () => (await import("../run/endpoints.ts")).showEndpoint,
  },
  {
    name: "endpoint add",
    help: "make one, and show its secret once",
    arguments: [{ name: "URL" }],
    options: SAID,
    load: async () => (await import("../run/endpoints.ts")).addEndpoint,
  },
  {
    name: "endpoint set",
    help: "change one",
    arguments: ID,
    options: { url: { value: "URL", help: "where it is" }, ...SAID },
    load: async () => (await import("../run/endpoints.ts")).setEndpoint,
  },
  {
    name: "endpoint delete",
    help: "remove one",
    arguments: ID,
    load: async () => (await import("../run/endpoints.ts")).deleteEndpoint,
  },
  {
    name: "endpoint pause",
    help: "nothing is posted there",
    arguments: ID,
    options: { reason: REASON },
    load: async () => (await import("../run/endpoints.ts")).pauseEndpoint,
  },
  {
    name: "endpoint resume",
    help: "it goes on",
    arguments: ID,
    load: async () => (await import("../run/endpoints.ts")).resumeEndpoint,
  },
  {
    name: "endpoint rotate",
    help: "a new secret, beside the one before for a while",
    arguments: ID,
    load: async () => (await import("../run/endpoints.ts")).rotateEndpoint,
  },
  {
    name: "endpoint test",
    help: "post something there now",
    arguments: ID,
    options: { url: { value: "URL", help: "there instead" } },
    load: async () => (await import("../run/endpoints.ts")).testEndpoint,
  },
  {
    name: "endpoint deliveries",
    help: "what was posted there",
    arguments: ID,
    load: async () => (await import("../run/endpoints.ts")).listDeliveries,
  },
  {
    name: "endpoint replay",
    help: "post again what happened",
    arguments: ID,
    options: { since: { ...SINCE, needed: "say from when on" }, until: UNTIL },
    load: async () => (await import("../run/endpoints.ts")).replayEndpoint,
  },
  {
    name: "callback dead",
    help: "callbacks that could not be delivered",
    load: async () => (await import("../run/endpoints.ts")).listDeadCallbacks,
  },
  {
    name: "callback requeue",
    help: "post them again",
    options: { endpoint: { value: "ID", help: "those of this endpoint" } },
    load: async () => (await import("../run/endpoints.ts")).requeueCallbacks,
  },
];
