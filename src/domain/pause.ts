// What an operator may stop for a while, without losing or spending anything.

export const PAUSE_KINDS = ["lane", "channel", "tenant", "provider"] as const;
export type PauseKind = (typeof PAUSE_KINDS)[number];
