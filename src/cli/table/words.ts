// Words of the API that the command line completes and explains.

import type { Channel } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { STATUSES } from "#domain/status.ts";
import type { Option } from "../command.ts";

/** As domain/notification.ts has them; the schemas there take longer to load than the help takes to read. */
export const CHANNELS = [
  "email",
  "push",
  "sms",
  "slack",
  "webhook",
  "inbox",
  "console",
  "file",
] as const satisfies readonly Channel[];

export const REASON: Option = { value: "TEXT", help: "why, for those who wonder later", needed: "say why" };
export const SINCE: Option = { value: "INSTANT", help: "from then on, such as 2027-01-01T09:00:00Z" };
export const UNTIL: Option = { value: "INSTANT", help: "until then" };
export const CHANNEL: Option = { value: "CHANNEL", help: "of this channel", words: CHANNELS };
export const PRIORITY: Option = { value: "PRIORITY", help: "of this lane", words: PRIORITIES };
export const STATUS: Option = { value: "STATUS", help: "that came to this", words: STATUSES };
export const countOf = (otherwise: number): Option => ({
  value: "N",
  help: `so many at most (${otherwise})`,
  least: 1,
});
