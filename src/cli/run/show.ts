// carillon show: one notification with all that happened to it.

import type { Run } from "../command.ts";
import { paintOf } from "../paint.ts";
import { timelineOf } from "./timeline.ts";

export const showNotification: Run = async ({ args: [id = ""] }, world) => {
  const detail = await (await world.client()).get(id);
  return { json: detail, text: timelineOf(detail, paintOf(world.screen)) };
};
