// Where ready work waits, and what that costs.

import type { Scenario } from "../scenario.ts";
import { accepted, behind, idle } from "./engines/beside.ts";
import { cost, drained } from "./engines/product.ts";
import { prototype } from "./engines/prototype.ts";
import { sqs } from "./engines/sqs.ts";

export const engines: Scenario = {
  summary: "queue engines: what PostgreSQL is spared where ready work waits elsewhere",
  parts: { cost, drain: drained, accept: accepted, latency: idle, backlog: behind, sqs, prototype },
};
