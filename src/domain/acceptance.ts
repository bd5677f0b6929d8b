// What becomes of a request at the door.

import type { NotificationRequest } from "./notification.ts";
import type { Priority } from "./priority.ts";
import type { Problem } from "./problems.ts";
import type { Status } from "./status.ts";

export type Acceptance = {
  notificationId: string;
  status: Status;
  channel: NotificationRequest["channel"];
  priority: Priority;
  enqueuedAt: string;
  scheduledFor?: string;
  estimatedDeliveryAt?: string;
  /** True when the idempotency key had been used before, with the same body. */
  isReplay: boolean;
};

/** What became of a request. */
export type Decision = Acceptance | Problem;
