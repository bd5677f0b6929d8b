// The configuration of the workers under test: every channel goes to the scriptable provider, whose fates are drawn
// from the run's seed or go by the way (ways.ts). A hook notes each send as it begins, in the same turn as the lease was checked.

import { openSync, writeSync } from "node:fs";
import type { Message } from "#channels/channel.ts";
import type { Mix } from "#channels/dev/test.ts";
import { CHANNELS } from "#domain/notification.ts";
import { seeded } from "../test/support/load.ts";
import { originOf, type Receiver, receiverOf } from "./ways.ts";

const { CHAOS_SEED = "0", CHAOS_CALLS = "", CHAOS_SENDS = "" } = process.env;
const sends = openSync(CHAOS_SENDS, "a");

const mix: Mix = {
  rejected: 0.02,
  deadRecipient: 0.01,
  unavailable: 0.06,
  limited: 0.03,
  hang: 0.015,
  acceptThenHang: 0.02,
  acceptThenReset: 0.03,
};

const shared = {
  type: "test",
  log: CHAOS_CALLS,
  latencyMs: [5, 120],
  retryAfterMs: 150,
  random: seeded(Number(CHAOS_SEED)),
  onSend({ notificationId: id, attempt }: Message) {
    writeSync(sends, `${JSON.stringify({ id, attempt, pid: process.pid, at: Date.now() })}\n`);
  },
};

const FATES = {
  well: "accepted",
  silent: "silent",
  away: "away",
  throttles: "throttled",
} as const satisfies { [receiver in Receiver]: string };

const hooks = {
  ...shared,
  receiver({ request }: Pick<Message, "request">) {
    const receiver = receiverOf(request);
    return receiver && originOf(receiver);
  },
  decide: ({ request }: Message) => FATES[receiverOf(request) ?? "well"],
};

// biome-ignore lint/style/noDefaultExport: that is how a configuration file hands itself over
export default {
  providers: { post: { ...shared, mix, cost: 0.0004 }, wire: { ...shared, cost: 0.0083 }, hooks },
  routes: { ...Object.fromEntries(CHANNELS.map((channel) => [channel, "post"])), sms: "wire", webhook: "hooks" },
};
