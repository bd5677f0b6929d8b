// The same service with two processes behind its port, beside one: what a second core brings.
//
// Load, service and PostgreSQL share the machine, so the processor time that a request costs each of them is part of the result: one
// process answers no more than its one thread can, several no more than the cores leave after the load and PostgreSQL.

import type { Part } from "../../scenario.ts";
import { carillonOver, caseOf, VARIANT } from "./http.ts";

export const processesPart: Part = {
  title: "One notification per request over HTTP, by one process and by two",
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: VARIANT, subject: "carillon, 2 processes", against: "carillon", atLeast: 1.4 }],
  cases: (world) => [
    caseOf(world, carillonOver(world, { name: "carillon" })),
    caseOf(world, carillonOver(world, { name: "carillon, 2 processes", env: { CARILLON_PROCESSES: "2" } })),
  ],
};
