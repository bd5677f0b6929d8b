// Hands one message to the providers of its route, in order, until one of them has it.
//
// A provider that is away or refuses for now is passed over within the same attempt: nothing left. Where an answer was
// lost the message may have left, so no other provider gets it; the sender's policy decides what follows.
//
// Before a provider is asked the guard is: one that is known to be down is passed over, and where nobody may be asked
// now the message is postponed. Where it is too late to ask, nobody else is asked either.

import type { Message, Provider, SendOptions } from "#channels/channel.ts";
import { type Late, type Postponed, type Reply, sooner } from "#domain/attempt.ts";
import { boundedReply } from "#domain/said.ts";
import { cut } from "#domain/text.ts";
import type { Admitted, Guard, Halt, Turn } from "#guards/guard.ts";

/** A provider that was passed over, and why. */
export type PassedOver = { provider: string; outcome: (Reply | Postponed)["kind"]; reason?: string; code?: string };

export type Carried = {
  outcome: Reply | Postponed | Late;
  /** Who said so, or does not answer. */
  provider: Provider | undefined;
  passedOver: PassedOver[];
  /** Where one was asked. */
  message?: Message | undefined;
};

/** A provider that answers at once costs no turn of the event loop. */
export function carry(
  message: Message,
  providers: readonly Provider[],
  options: SendOptions,
  guard: Guard,
  turn: Turn,
): Carried | Promise<Carried> {
  const [first] = providers;
  if (!first) {
    const reason = `no provider carries ${message.request.channel}`;
    return { outcome: { kind: "rejected", reason }, provider: undefined, passedOver: [] };
  }
  const ticket = guard.admit(first, message, turn);
  if (typeof ticket !== "number") return others(ticket, message, providers, options, guard, turn);
  const reply = ask(first, message, options);
  if (reply instanceof Promise) {
    return others(reported(reply, first, message, ticket, guard), message, providers, options, guard, turn);
  }
  guard.report(first, message, ticket, reply);
  return isPassedOver(reply) && providers.length > 1
    ? others(Promise.resolve(reply), message, providers, options, guard, turn)
    : { outcome: reply, provider: first, passedOver: [], message };
}

/** `begun` is what became of the first: the guard's answer, or already the provider's. */
async function others(
  begun: Halt | Late | Promise<Admitted | Reply>,
  message: Message,
  providers: readonly Provider[],
  options: SendOptions,
  guard: Guard,
  turn: Turn,
): Promise<Carried> {
  const tried: PassedOver[] = [];
  // Whom it was passed over to so late begins no more: another attempt will.
  const beginBy = performance.now() + options.timeoutMs;
  let asked: { reply: Reply; provider: Provider } | undefined;
  let held: Postponed | undefined;
  let late: Late | undefined;
  for (const [n, provider] of providers.entries()) {
    let found = n === 0 ? await begun : await guard.admit(provider, message, turn);
    if (typeof found === "number") {
      found = await reported(ask(provider, message, options), provider, message, found, guard);
    }
    if (found.kind === "expired" || found.kind === "released") {
      late = found;
      break;
    }
    const isLast = n === providers.length - 1;
    if (found.kind === "postponed") {
      const { isPassedOver: isDown, ...halt } = found;
      held = held ? sooner(held, halt) : halt;
      if (!isDown) break;
    } else {
      asked = { reply: found, provider };
      if (!isPassedOver(found) || isLast || options.signal.aborted || performance.now() > beginBy) break;
    }
    tried.push({ provider: provider.name, outcome: found.kind, ...wordsOf(found) });
  }
  if (asked) {
    const { reply, provider } = asked;
    const passedOver = tried.filter((one) => one.provider !== provider.name);
    return { outcome: mostHopeful(reply, passedOver), provider, passedOver, message };
  }
  if (late) return { outcome: late, provider: undefined, passedOver: [] };
  // Nobody was asked, so that no attempt was made: it is a matter of waiting.
  const outcome: Postponed = { kind: "postponed", waitMs: 0, reason: "", ...held };
  const provider = held?.silentMs === undefined ? undefined : providers[0];
  return { outcome, provider, passedOver: [] };
}

async function reported(
  asked: Reply | Promise<Reply>,
  provider: Provider,
  message: Message,
  ticket: number,
  guard: Guard,
): Promise<Reply> {
  const reply = await asked;
  guard.report(provider, message, ticket, reply);
  return reply;
}

const isPassedOver = ({ kind }: Reply): boolean => kind === "unavailable" || kind === "limited";

/** One provider's no is not the route's no: while another was only away, there is hope for a retry. */
function mostHopeful(reply: Reply, passedOver: readonly PassedOver[]): Reply {
  if (reply.kind !== "rejected" || reply.category !== "credentials" || passedOver.length === 0) return reply;
  return { kind: "unavailable", reason: reply.reason, category: reply.category };
}

function wordsOf(reply: Reply | Postponed): { reason?: string; code?: string } {
  if (!("reason" in reply)) return {};
  return {
    reason: cut(reply.reason, 300),
    ...("code" in reply && reply.code !== undefined && { code: reply.code }),
  };
}

function ask(provider: Provider, message: Message, options: SendOptions): Reply | Promise<Reply> {
  try {
    const reply = provider.send(message, options);
    return reply instanceof Promise ? answered(reply, message, options, provider) : boundedReply(reply);
  } catch (error) {
    return failure(error);
  }
}

async function answered(
  asked: Promise<Reply>,
  message: Message,
  options: SendOptions,
  provider: Provider,
): Promise<Reply> {
  try {
    const reply = boundedReply(await asked);
    if (reply.kind !== "ambiguous" || message.request.onAmbiguous !== "reconcile") return reply;
    return await reconcile(reply, message, options, provider);
  } catch (error) {
    return failure(error);
  }
}

/** A provider must not throw. If it does, nobody knows whether the message left. */
const failure = (error: unknown): Reply =>
  boundedReply({
    kind: "ambiguous",
    reason: `the provider failed: ${error instanceof Error ? error.message : error}`,
  });

/** Asks the provider what became of it. If it cannot tell, the notification is held for a person to decide. */
async function reconcile(reply: Reply, message: Message, options: SendOptions, provider: Provider): Promise<Reply> {
  switch (await provider.reconcile?.(message, options)) {
    case "accepted":
      return { kind: "accepted" };
    case "unknown-message":
      return { kind: "unavailable", reason: "the answer was lost; the provider does not know the message" };
    default:
      return reply;
  }
}
