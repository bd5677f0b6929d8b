// What went over the wire in an attempt, for its line of the record. Only where somebody wants it: of failures, or of all.

import type { Message, Provider } from "#channels/channel.ts";
import { type Exchange, type Exchanges, kept } from "#domain/exchange.ts";
import type { Heard } from "#wire/heard.ts";
import type { Result } from "./send.ts";

type Asked = Result & { message: Message; provider: Provider };

/** A provider was asked, and what came of it is to be written down. Callbacks have records of their own. */
export const isToldOf = (exchanges: Exchanges, result: Result): result is Asked =>
  exchanges !== "off" &&
  result.message !== undefined &&
  result.provider !== undefined &&
  result.message.tenant > 0 &&
  (exchanges === "all" || result.outcome.kind !== "accepted");

/** Never rejects: what cannot be told is left out. */
export async function exchangeOf(
  { message, provider }: Asked,
  heard: Heard | undefined,
): Promise<Exchange | undefined> {
  const { redact = String } = provider;
  const request = await encoded(provider, message);
  const exchange: Exchange = {
    ...(request && { request: { type: request.type, body: kept(request.body, redact) } }),
    ...(heard && { answer: { status: heard.status, body: kept(heard.text, redact) } }),
  };
  return request || heard ? exchange : undefined;
}

async function encoded(provider: Provider, message: Message) {
  try {
    const made = await provider.encode?.(message);
    return made && "body" in made ? made : undefined;
  } catch {
    return undefined;
  }
}
