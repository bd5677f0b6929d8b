// Where a notification stands. The first three are waiting, the others are endings;
// `sent` and `ambiguous` may still turn into `delivered` or `failed` by a provider's report.

export const WAITING = ["pending", "queued", "processing"] as const;
export const ENDINGS = ["sent", "delivered", "failed", "cancelled", "expired", "suppressed", "ambiguous"] as const;
export const STATUSES = [...WAITING, ...ENDINGS] as const;

export type Ending = (typeof ENDINGS)[number];
export type Status = (typeof STATUSES)[number];
