// Looks at callbacks before any of them is sent: where their endpoints stand, and for those that stand in line whether it is their turn.

import { outcomeAt } from "#channels/callback/endpoint.ts";
import type { Endpoints } from "#channels/callback/endpoints.ts";
import type { Claimed, Outcome } from "#domain/attempt.ts";
import { callbackOf } from "#domain/callback.ts";
import { CALLBACK_RANK } from "#domain/priority.ts";
import type { Lined } from "#queue/postgres/lines.ts";
import type { Findings } from "./prepare.ts";
import type { Settled } from "./settle.ts";

/** What a worker of callbacks has besides. */
export type CallbackWorld = {
  /** Each that was. Never throws. */
  settled: (settled: Settled) => void;
  endpoints: Pick<Endpoints, "find">;
  areFirst: (lined: readonly Lined[]) => Promise<boolean[]>;
  nowMs: () => number;
};

type Call = Claimed & Findings;

/** It is brought back when its turn has come. */
const BEHIND_MS = 60_000;

/** Undefined when there are none among them: a claim is of callbacks or of notifications. */
export const findEndpoints = (claimed: readonly Call[], world: CallbackWorld): Promise<void> | undefined =>
  claimed[0]?.rank === CALLBACK_RANK ? find(claimed, world) : undefined;

async function find(calls: readonly Call[], { endpoints, areFirst, nowMs }: CallbackWorld): Promise<void> {
  const lined = calls.flatMap((call) => {
    const line = callbackOf(call.request)?.line;
    return line === undefined ? [] : [{ call, line }];
  });
  const isFirst = await areFirst(lined.map(({ call: { tenant, seq }, line }) => ({ tenant, seq, line })));
  const behind = new Set(lined.filter((_, n) => !isFirst[n]).map(({ call }) => call));
  await Promise.all(
    calls.map(async (call) => {
      const { endpoint: id = "", until } = callbackOf(call.request) ?? {};
      // What a resume brought back is not put off again by what was known before.
      const endpoint = await endpoints.find({ tenant: -call.tenant, id }, call.lease.answeredAt);
      if (endpoint) call.endpoint = endpoint;
      const outcome = behind.has(call) ? BEHIND : isOver(until, nowMs()) ? OVER : outcomeAt(endpoint);
      if (outcome) call.outcome = outcome;
    }),
  );
}

const BEHIND: Outcome = { kind: "postponed", waitMs: BEHIND_MS, reason: "the one before it in line has not ended" };

/** It ends as a dead letter, and not as expired: somebody wanted it told. */
const OVER: Outcome = { kind: "rejected", reason: "what it tells of is no longer kept" };
const isOver = (until: string | undefined, nowMs: number): boolean => until !== undefined && Date.parse(until) <= nowMs;
