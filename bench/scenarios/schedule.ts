// Jobs for later: whether they begin on time, however many wait.

import type { Scenario } from "../scenario.ts";
import { burst } from "./schedule/burst.ts";
import { lateness } from "./schedule/lateness.ts";
import { memory } from "./schedule/memory.ts";
import { reaction } from "./schedule/reaction.ts";

export const schedule: Scenario = {
  summary: "jobs for later: how late they begin, many due at once, a scheduler asleep, memory",
  parts: { lateness, burst, reaction, memory },
};
