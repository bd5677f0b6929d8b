// The guard of a callback: what the others let through has its endpoint looked up last, as it may have waited for its turn until then: it goes
// where the endpoint leads now, unless that is paused by now.
//
// A database that is slow to answer takes its time too, so after it the lease is looked at once more: whoever holds it by then posts.

import { type Endpoint, outcomeAt } from "#channels/callback/endpoint.ts";
import { type Endpoints, nameOf } from "#channels/callback/endpoints.ts";
import type { Message } from "#channels/channel.ts";
import { type Late, latenessOf } from "#domain/attempt.ts";
import type { Guard, Halt, Turn } from "#guards/guard.ts";

export type EndpointGuardOptions = {
  guard: Guard;
  endpoints: Pick<Endpoints, "find">;
  monotonic: () => number;
  leaseMarginMs: number;
  onFailure: (error: unknown) => void;
};

const UNREAD_MS = 1_000;

export function endpointGuard({ guard, endpoints, monotonic, leaseMarginMs, onFailure }: EndpointGuardOptions): Guard {
  async function refusalAfter(finding: Promise<Endpoint | undefined>, turn: Turn): Promise<Halt | Late | undefined> {
    try {
      const paused = refusalAt(await finding);
      return latenessOf(turn, monotonic(), leaseMarginMs) ?? paused;
    } catch (error) {
      onFailure(error);
      return not(UNREAD_MS, "the endpoint cannot be read");
    }
  }

  return {
    ...guard,
    admit(provider, message, turn) {
      const refuse = (ticket: number, refusal: Halt | Late | undefined) => {
        if (refusal) guard.giveBack(provider, message, ticket);
        return refusal ?? ticket;
      };
      const look = (ticket: number) => {
        const found = find(endpoints, message);
        if (!(found instanceof Promise)) return refuse(ticket, refusalAt(found));
        return refusalAfter(found, turn).then((refusal) => refuse(ticket, refusal));
      };
      const admitted = guard.admit(provider, message, turn);
      if (typeof admitted === "number") return look(admitted);
      return admitted instanceof Promise
        ? admitted.then((one) => (typeof one === "number" ? look(one) : one))
        : admitted;
    },
  };
}

function find(endpoints: Pick<Endpoints, "find">, message: Message) {
  const name = nameOf(message);
  return name && endpoints.find(name);
}

/** Of one that is gone or disabled its provider says so. */
function refusalAt(endpoint: Endpoint | undefined): Halt | undefined {
  const outcome = outcomeAt(endpoint);
  return outcome?.kind === "postponed" ? { ...outcome, isPassedOver: false } : undefined;
}

const not = (waitMs: number, reason: string): Halt => ({ kind: "postponed", waitMs, reason, isPassedOver: false });
