// The part of the client for dead letters: plans to send them again, or to take them off the list.

import type { Channel } from "#domain/notification.ts";
import type { PlanKind, PlanState, Tally } from "#domain/plan.ts";
import type { Priority } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { CallOptions } from "./client.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type { PlanKind, PlanState };

export type DeadLetterFilter = {
  channel?: Channel;
  priority?: Priority;
  provider?: string;
  userId?: string;
  templateId?: string;
  outcome?: string;
  /** Part of the error, in whatever case. */
  error?: string;
  /** The error without what tells one message from another. */
  cause?: string;
  since?: string;
  until?: string;
};
export type PlanRequest = {
  kind: PlanKind;
  /** So many a second; 100 where it is not said. */
  rate?: number;
} & ({ filter: DeadLetterFilter; ids?: never } | { ids: readonly string[]; filter?: never });

export type PlanApplication = {
  rate?: number;
  /** So many go first. */
  canary?: number;
  /** Whether it goes on after those when somebody says so, or by itself when all of them were sent. */
  continue?: "confirmed" | "sent";
};

export type Plan = {
  planId: string;
  kind: PlanKind;
  state: PlanState;
  filter?: DeadLetterFilter;
  madeBy: string;
  createdAt: string;
  /** How many it is for. Nothing else is touched. */
  count: number;
  truncated: boolean;
  looked: number;
  /** How many were left out, by reason. */
  excluded: Tally;
  estimate: { cost: number; unpriced: number; seconds: number; rate: number };
  progress: { done: number; skipped: Tally; remaining: number };
  canary?: { done: number; standing: { [status in Status]?: number } };
  startedAt?: string;
  finishedAt?: string;
  error?: string;
};

export type PlanClient = {
  plans: {
    /** Counts, and does nothing yet. */
    create(plan: PlanRequest, options?: CallOptions): Promise<Plan>;
    list(page?: PageOptions, options?: CallOptions): Promise<Page<Plan>>;
    get(planId: string, options?: CallOptions): Promise<Plan>;
    apply(planId: string, application?: PlanApplication, options?: CallOptions): Promise<Plan>;
    continue(planId: string, options?: CallOptions): Promise<Plan>;
    /** Nothing more of it is done once this has answered. */
    abort(planId: string, options?: CallOptions): Promise<Plan>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function planClient(call: Call): PlanClient {
  const path = (id: string, rest = "") => `/v1/plans/${encodeURIComponent(id)}${rest}`;
  // A call whose answer was lost may have been heeded: made once more, it would be another plan, or a plan that is under way already.
  const once = (options?: CallOptions): CallOptions => ({ maxAttempts: 1, ...options });
  return {
    plans: {
      create: (plan, options) => call("POST", "/v1/plans", once(options), plan),
      list: (page, options) => call("GET", `/v1/plans${pageQuery(page)}`, options),
      get: (id, options) => call("GET", path(id), options),
      apply: (id, application = {}, options) => call("POST", path(id, "/apply"), once(options), application),
      continue: (id, options) => call("POST", path(id, "/continue"), once(options)),
      abort: (id, options) => call("POST", path(id, "/abort"), once(options)),
    },
  };
}
