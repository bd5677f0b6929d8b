// What was refused, told to a topic: the message as it came, with why. At least once, and never in the way of those that are good.

import type { BaseOptions, Producer } from "@platformatic/kafka";
import { cut, hearErrors, type KafkaPackage } from "#wire/kafka-client.ts";
import type { ReadBatch } from "./kafka-records.ts";
import type { Keeping, Refusal } from "./source.ts";

type Telling = Producer<Buffer, Buffer, Buffer, Buffer>;
type Told = Omit<Refusal, "offset"> & { read?: ReadBatch["messages"][number] | undefined };

/** What is not told yet; beyond it messages are told later, without their value. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Larger ones stay where they are: the topic of refusals may not take them either. */
const MOST_VALUE = 262_144;
const MOST_AT_ONCE = 524_288;

export class RefusalsTopic {
  readonly #producer: Telling;
  readonly #topic: string;
  readonly #keeping: Keeping;
  #bytes = 0;
  #isTellingUntold = false;

  constructor(kafka: KafkaPackage, options: BaseOptions, topic: string, keeping: Keeping) {
    this.#producer = new kafka.Producer({ ...options, acks: -1 });
    hearErrors(this.#producer);
    this.#topic = topic;
    this.#keeping = keeping;
  }

  /** Of those for which there is no room now, or that cannot be told, others are told in a while. */
  tell(refused: readonly Refusal[], batch: ReadBatch): void {
    const byOffset = new Map(batch.messages.map((message) => [message.offset, message]));
    const told = refused.map((refusal) => ({ ...refusal, read: byOffset.get(refusal.offset) }));
    const bytes = told.reduce((sum, { read }) => sum + (read?.bytes ?? 0), 0);
    if (this.#bytes + bytes > MOST_BYTES) return;
    this.#bytes += bytes;
    this.#send(told)
      .catch((error: unknown) => this.#keeping.failed(error))
      .finally(() => {
        this.#bytes -= bytes;
      });
  }

  /** Those that somebody refused and did not tell, as it ended or could not: without their value, which is where it was. */
  tellUntold(): void {
    if (this.#isTellingUntold) return;
    this.#isTellingUntold = true;
    this.#tellUntold()
      .catch((error: unknown) => this.#keeping.failed(error))
      .finally(() => {
        this.#isTellingUntold = false;
      });
  }

  async close(): Promise<void> {
    await cut(this.#producer);
  }

  async #tellUntold(): Promise<void> {
    for (let untold = await this.#keeping.untold(); untold.length > 0; untold = await this.#keeping.untold()) {
      await this.#send(untold);
    }
  }

  /** Some at a time: what goes to one partition together must not be larger than a message may be. */
  async #send(told: readonly Told[]): Promise<void> {
    for (let from = 0; from < told.length; ) {
      let [bytes, to] = [0, from];
      while (to < told.length && (to === from || bytes + sizeOf(told[to] as Told) <= MOST_AT_ONCE)) {
        bytes += sizeOf(told[to++] as Told);
      }
      const some = told.slice(from, to);
      await this.#producer.send({ messages: some.map((one) => ({ topic: this.#topic, ...recordOf(one) })) });
      await this.#keeping.told(some);
      from = to;
    }
  }
}

const isWhole = (read: Told["read"]): boolean => read?.value !== undefined && read.bytes <= MOST_VALUE;
const sizeOf = ({ faults, read }: Told): number =>
  JSON.stringify(faults).length + (isWhole(read) ? (read?.bytes ?? 0) : 0) + 500;

function recordOf({ place, code, faults, read }: Told) {
  const headers = new Map<Buffer, Buffer>();
  const whole = isWhole(read) ? read : undefined;
  for (const [name, value] of whole?.raw ?? []) if (name && value) headers.set(name, value);
  const add = (name: string, value: string) => headers.set(Buffer.from(name), Buffer.from(value));
  add("carillon-place", place);
  add("carillon-code", code);
  add("carillon-faults", JSON.stringify(faults));
  return { ...(whole?.key && { key: whole.key }), ...(whole?.value && { value: whole.value }), headers };
}
