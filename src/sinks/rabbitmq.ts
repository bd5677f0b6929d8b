// Facts to RabbitMQ: each a persistent message that the broker has confirmed.
//
// One connection and one channel, so that what is published arrives in that order. Every fault ends the connection with all that is not written
// yet, and the next delivery makes a new one. A message that no queue is bound for comes back (`mandatory`) and is refused: the broker would
// confirm it, and forget it.

import type { Options } from "amqplib";
import { factId } from "#domain/fact.ts";
import { optional } from "#wire/optional.ts";
import { CONTENT_TYPE, cloudEventOf } from "./cloud-event.ts";
import { type FactText, readFactText } from "./fact-text.ts";
import { type Link, openLink, type Place, placeOf } from "./rabbitmq-link.ts";
import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink, Refused, Sink, Told } from "./sink.ts";

/** Of the names of exchanges, and of routing keys. */
const LONGEST_BYTES = 255;
const MOST = 3000;

type Message = { exchange: string; routingKey: string; content: Buffer; options: Options.Publish };

export const openRabbit: OpenSink<SettingsOfSink<"rabbitmq">> = async (settings, name) => {
  const what = `the sink ${name}`;
  const amqp = await optional(what, "amqplib", () => import("amqplib"));
  const { exchange = "carillon", routingKey = "{{ type }}" } = settings;
  return new RabbitSink({
    place: placeOf(amqp, settings, name),
    exchange: readFactText(`exchange of ${what}`, exchange, LONGEST_BYTES),
    isDefaultExchange: exchange === "",
    routingKey: readFactText(`routingKey of ${what}`, routingKey, LONGEST_BYTES),
  });
};

type Addressing = { place: Place; exchange: FactText; isDefaultExchange: boolean; routingKey: FactText };

class RabbitSink implements Sink {
  readonly most = MOST;
  readonly #addressing: Addressing;
  #link: Link | undefined;

  constructor(addressing: Addressing) {
    this.#addressing = addressing;
  }

  /** A fact becomes a message when there is room for it: meanwhile the broker is at work on those before. */
  async deliver(facts: readonly Told[], signal: AbortSignal): Promise<readonly Refused[]> {
    if (facts.length === 0) return [];
    const refused: Refused[] = [];
    try {
      const returned = await publishAll(await this.#linked(signal), this.#messagesOf(facts, refused), signal);
      for (const told of returned.size > 0 ? facts : []) {
        const error = returned.get(factId(told.fact));
        if (error !== undefined) refused.push({ told, error });
      }
      return refused;
    } catch (error) {
      const mostBytes = largestTaken(error);
      const bytesOf = (told: Told) => Buffer.byteLength(cloudEventOf(told).data);
      const large = mostBytes === undefined ? [] : facts.filter((told) => bytesOf(told) > mostBytes);
      if (large.length === 0) throw error;
      // Those that were taken already come again, as they do after every fault.
      const small = facts.filter((told) => !large.includes(told));
      const why = (told: Told) => `it has ${bytesOf(told)} bytes, and RabbitMQ takes ${mostBytes} at most`;
      return [...large.map((told) => ({ told, error: why(told) })), ...(await this.deliver(small, signal))];
    }
  }

  async close(): Promise<void> {
    await this.#link?.close();
    this.#link = undefined;
  }

  async #linked(signal: AbortSignal): Promise<Link> {
    if (this.#link === undefined || this.#link.ended.aborted)
      this.#link = await openLink(this.#addressing.place, signal);
    return this.#link;
  }

  *#messagesOf(facts: readonly Told[], refused: Refused[]): Generator<Message, undefined> {
    for (const told of facts) {
      const made = this.#messageOf(told);
      if ("error" in made) refused.push({ told, error: made.error });
      else yield made;
    }
  }

  #messageOf(told: Told): Message | { error: string } {
    const { exchange: exchangeOf, routingKey: routingKeyOf, isDefaultExchange } = this.#addressing;
    const exchange = exchangeOf(told);
    if ("error" in exchange) return exchange;
    // By the default one it would go to whatever queue has that name.
    if (exchange.text === "" && !isDefaultExchange) return { error: "the exchange's name came out empty" };
    const routingKey = routingKeyOf(told);
    if ("error" in routingKey) return routingKey;
    const { attributes, data } = cloudEventOf(told);
    const { at } = told.fact;
    return {
      exchange: exchange.text,
      routingKey: routingKey.text,
      content: Buffer.from(data),
      options: {
        mandatory: true,
        persistent: true,
        messageId: factId(told.fact),
        contentType: CONTENT_TYPE,
        timestamp: Math.floor(at.getTime() / 1000),
        appId: "carillon",
        headers: headersOf(attributes),
      },
    };
  }
}

/** Resolves when all are confirmed, with what is said of those that came back, by their ids. Whatever else happens ends the connection. */
async function publishAll(
  link: Link,
  messages: Iterator<Message, undefined>,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const { channel, ended, cut } = link;
  const returned = new Map<string, string>();
  const onReturned = (message: { fields: object; properties: { messageId?: string } }) =>
    returned.set(message.properties.messageId ?? "", noQueueFor(message.fields));
  const onAborted = () => cut(link.whyWaiting() ?? signal.reason);
  channel.on("return", onReturned);
  signal.addEventListener("abort", onAborted);
  if (signal.aborted) onAborted();
  try {
    await confirmed(channel, ended, cut, messages);
    return returned;
  } finally {
    channel.off("return", onReturned);
    signal.removeEventListener("abort", onAborted);
  }
}

/** Publishes as fast as the socket takes it. */
function confirmed(
  channel: Link["channel"],
  ended: AbortSignal,
  cut: Link["cut"],
  messages: Iterator<Message, undefined>,
): Promise<void> {
  let waited = 0;
  let isLast = false;
  return new Promise((resolve, reject) => {
    const over = () => {
      channel.off("drain", publishOn);
      ended.removeEventListener("abort", over);
      if (ended.aborted) reject(ended.reason);
      else resolve();
    };
    const onAnswer = (error: unknown) => {
      if (error) return cut(new Error("RabbitMQ did not take a message: a queue is full, or it could not be written"));
      waited--;
      if (isLast && waited === 0) over();
    };
    const publishOn = () => {
      try {
        for (let hasRoom = true; hasRoom && !isLast; ) {
          const { value: message } = messages.next();
          isLast = message === undefined;
          if (message === undefined) break;
          waited++;
          hasRoom = channel.publish(message.exchange, message.routingKey, message.content, message.options, onAnswer);
        }
        if (isLast && waited === 0) over();
      } catch (error) {
        cut(error);
      }
    };
    if (ended.aborted) return over();
    channel.on("drain", publishOn);
    ended.addEventListener("abort", over);
    publishOn();
  });
}

function noQueueFor(fields: { exchange?: string; routingKey?: string; replyText?: string }): string {
  const { exchange = "", routingKey = "", replyText = "" } = fields;
  return `no queue is bound to the exchange "${exchange}" for the routing key "${routingKey}" (${replyText})`;
}

/** The bytes that a message may have, where that is why the broker closed the channel. It does not say which one was too large. */
function largestTaken(error: unknown): number | undefined {
  const found = /message size \d+ is larger than (?:configured )?max size (\d+)/.exec(String(error));
  return found ? Number(found[1]) : undefined;
}

const HEADERS = new Map<string, string>();

function headersOf(attributes: { readonly [name: string]: string }): { [name: string]: string } {
  const headers: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(attributes)) {
    const header = HEADERS.get(name) ?? `cloudEvents:${name}`;
    HEADERS.set(name, header);
    headers[header] = value;
  }
  return headers;
}
