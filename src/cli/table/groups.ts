// All commands, in the order of the help.

import type { Command } from "../command.ts";
import { ARCHIVE } from "./archive.ts";
import { CALLBACKS } from "./callbacks.ts";
import { CONNECTORS } from "./connectors.ts";
import { NOTIFICATIONS } from "./notifications.ts";
import { OPERATING, PLANNED } from "./operating.ts";
import { SERVING } from "./serving.ts";
import { SHELL } from "./shell.ts";

export const GROUPS: readonly { title: string; commands: readonly Command[] }[] = [
  { title: "Running it", commands: SERVING },
  { title: "Notifications", commands: NOTIFICATIONS },
  { title: "Schedules and reminders", commands: PLANNED },
  { title: "Operating", commands: OPERATING },
  { title: "Callbacks", commands: CALLBACKS },
  { title: "Brokers", commands: CONNECTORS },
  { title: "Archive", commands: ARCHIVE },
  { title: "This command line", commands: SHELL },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);
