// Where ready work waits, and what that costs.

import type { Scenario } from "../scenario.ts";
import { prototype } from "./engines/prototype.ts";

export const engines: Scenario = {
  summary: "queue engines: what PostgreSQL is spared where ready work waits elsewhere",
  parts: { prototype },
};
