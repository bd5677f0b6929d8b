// The configuration of the processes under test: a provider that mostly takes what it is given, so that facts of several types come about.

import type { Mix } from "#channels/dev/test.ts";
import { CHANNELS } from "#domain/notification.ts";

const mix: Mix = { rejected: 0.05, unavailable: 0.15 };

// biome-ignore lint/style/noDefaultExport: that is how a configuration file hands itself over
export default {
  providers: { post: { type: "test", latencyMs: [1, 20], mix } },
  routes: Object.fromEntries(CHANNELS.map((channel) => [channel, "post"])),
};
