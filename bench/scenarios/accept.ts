// How fast notifications are taken over safely, through each door, beside the peers and the floors.

import type { Scenario } from "../scenario.ts";
import { batchPart } from "./accept/batch.ts";
import { httpPart } from "./accept/http.ts";
import { libraryPart } from "./accept/library.ts";
import { processesPart } from "./accept/processes.ts";

export const accept: Scenario = {
  summary: "take over notifications: one at a time from Node, over HTTP, and in batches",
  parts: { library: libraryPart, http: httpPart, processes: processesPart, batch: batchPart },
};
