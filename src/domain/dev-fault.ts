// How a send may be made to fail, in development: what a provider in trouble would do.

export const DEV_FAULTS = ["429", "503", "refused", "dead-recipient", "hang", "lost-answer"] as const;
export type DevFault = (typeof DEV_FAULTS)[number];

/** Of the next so many sends. */
export type NewFault = {
  provider?: string;
  channel?: string;
  fault: DevFault;
  next: number;
  retryAfterSeconds?: number;
};
