// What the fields of plans for dead letters mean; see fields-of-notifications.ts.

import type { Fields } from "./describe.ts";

/** Why something is left out of a plan, or passed over in it. */
const REASONS: Fields = {
  gone: ["There is none of that id, or retention has taken it", 0],
  waiting: ["It waits to be sent, or is being sent", 1],
  sent: ["It was sent since, or may have been", 2],
  ended: ["It was cancelled, or ended otherwise", 0],
  purged: ["It was taken off the list before", 0],
  changed: ["It was sent again since, and has failed again", 0],
  restored: ["It was brought back from the archive, to be read", 0],
  forgotten: ["Its user was forgotten", 0],
  expired: ["Its `expiresAt` has passed", 3],
  reached: ["A later one with the same template was sent to the same user", 0],
  suppressed: ["Nothing more is sent to its address", 1],
};
const under = (place: string, fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [`${place}.${name}`, field]));

export const OF_PLANS: Fields = {
  planId: "The plan's id",
  "Plans.id": "The plan's id",
  "Plan.kind": "What it does: send again, or take off the list",
  "PlanRequest.kind": "What is to be done: send again, or take off the list",
  "Plan.state": "How far it is",
  madeBy: ["Who made it", "key:ck_5f3a"],
  "Plan.count": ["How many it is for. Nothing else is touched", 1200],
  truncated: "There are more than a plan may hold",
  looked: ["How many failures were looked at", 1207],
  excluded: "How many were left out, by reason",
  ...under("excluded", REASONS),
  ...under("skipped", REASONS),
  "progress.skipped": "How many were passed over since, by reason",
  "progress.done": ["How many were seen to", 300],
  "progress.remaining": ["How many are still to go", 900],
  estimate: "What carrying it out takes",
  "estimate.cost": ["Of sending all of them, in US dollars", 0.96],
  unpriced: ["Of how many nobody knows what they cost", 0],
  seconds: ["How long it takes at this rate", 12],
  "estimate.rate": ["So many a second", 100],
  "PlanRequest.rate": ["So many a second", 100],
  "PlanApplication.rate": ["So many a second", 100],
  progress: "How far it has come",
  "Plan.canary": "Those that went first, and how they fared",
  "canary.done": ["How many went first", 10],
  standing: ["How many have which status", { sent: 9, queued: 1 }],
  "PlanApplication.canary": ["So many go first", 10],
  continue: "Whether it goes on after those when somebody says so, or by itself when all of them were sent",
  "Plan.error": ["Why the last batch failed. It is tried again", "the database did not answer"],
  "detail.plan": ["The plan by which it happened", "018f2c1d-7000-7000-8000-000000000000"],
  newestAt: "When the newest of them failed",
  oldestAt: "When the oldest of them failed",
  examples: "The newest three",
  "DeadLetterGroup.count": ["How many there are", 37],
  "DeadLetterGroups.total": ["How many were found, of all groups", 112],
  searchedUntil: "How far back was looked, where there was more than could be looked at",
  "query.recipient": ["An address, a number, a Slack channel or a URL", "ana@example.com"],
  "list.id": "This notification alone",
  cause: ["The error without what tells one message from another", "mailbox busy"],
};
