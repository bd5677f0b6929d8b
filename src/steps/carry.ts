// Hands one message to the providers of its route, in order, until one of them has it.
//
// A provider that is away or refuses for now is passed over within the same attempt: nothing left. Where an answer was
// lost the message may have left, so no other provider gets it; the sender's policy decides what follows.

import type { Message, Provider, SendOptions } from "../channels/channel.ts";
import type { Reply } from "../domain/attempt.ts";

/** A provider that was passed over, and why. */
export type PassedOver = { provider: string; outcome: Reply["kind"]; reason?: string; code?: string };

export type Carried = {
  reply: Reply;
  /** Who gave the reply. */
  provider: Provider | undefined;
  passedOver: PassedOver[];
};

/** A provider that answers at once costs no turn of the event loop. */
export function carry(
  message: Message,
  providers: readonly Provider[],
  options: SendOptions,
): Carried | Promise<Carried> {
  const [first] = providers;
  if (!first) {
    const reason = `no provider carries ${message.request.channel}`;
    return { reply: { kind: "rejected", reason }, provider: undefined, passedOver: [] };
  }
  const reply = ask(first, message, options);
  if (reply instanceof Promise) return others(reply, message, providers, options);
  return isPassedOver(reply) && providers.length > 1
    ? others(Promise.resolve(reply), message, providers, options)
    : { reply, provider: first, passedOver: [] };
}

async function others(
  asked: Promise<Reply>,
  message: Message,
  providers: readonly Provider[],
  options: SendOptions,
): Promise<Carried> {
  const passedOver: PassedOver[] = [];
  let reply = await asked;
  for (const [n, provider] of providers.entries()) {
    if (n > 0) reply = await ask(provider, message, options);
    if (!isPassedOver(reply) || n === providers.length - 1 || options.signal.aborted) {
      return { reply: mostHopeful(reply, passedOver), provider, passedOver };
    }
    passedOver.push({ provider: provider.name, outcome: reply.kind, ...wordsOf(reply) });
  }
  return { reply, provider: providers.at(-1), passedOver };
}

const isPassedOver = ({ kind }: Reply): boolean => kind === "unavailable" || kind === "limited";

/** One provider's no is not the route's no: while another was only away, there is hope for a retry. */
function mostHopeful(reply: Reply, passedOver: readonly PassedOver[]): Reply {
  if (reply.kind !== "rejected" || reply.category !== "credentials" || passedOver.length === 0) return reply;
  return { kind: "unavailable", reason: reply.reason, category: reply.category };
}

function wordsOf(reply: Reply): { reason?: string; code?: string } {
  if (!("reason" in reply)) return {};
  return { reason: reply.reason.slice(0, 300), ...(reply.code !== undefined && { code: reply.code }) };
}

function ask(provider: Provider, message: Message, options: SendOptions): Reply | Promise<Reply> {
  try {
    const reply = provider.send(message, options);
    return reply instanceof Promise ? answered(reply, message, options, provider) : reply;
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
    const reply = await asked;
    if (reply.kind !== "ambiguous" || message.request.onAmbiguous !== "reconcile") return reply;
    return await reconcile(reply, message, options, provider);
  } catch (error) {
    return failure(error);
  }
}

/** A provider must not throw. If it does, nobody knows whether the message left. */
const failure = (error: unknown): Reply => ({
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
