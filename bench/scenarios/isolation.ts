// Walls: whether urgent ones wait for others, a tenant for another, healthy receivers for one that hangs.

import { publishIsolation } from "../publish/isolation.ts";
import type { Scenario } from "../scenario.ts";
import { crowdOfTenants } from "./isolation/crowd-of-tenants.ts";
import { lanes } from "./isolation/lanes.ts";
import { receivers } from "./isolation/receivers.ts";
import { tenants } from "./isolation/tenants.ts";

export const isolation: Scenario = {
  summary: "what waits for what: lanes, tenants and receivers beside others that take all they can get",
  parts: { lanes, tenants, drain: crowdOfTenants, receivers },
  publish: publishIsolation,
};
