// What has come of a lane: messages that are ours for a while, and the entries in them that nobody has taken yet.
//
// It is asked for by long polling, as much as takers lately wanted and no more: what one process holds, others do not see. What nobody takes in time goes
// back, and then nothing more is asked for until somebody wants some.
// State: those messages, and how much is wanted.

import { setTimeout as sleep } from "node:timers/promises";
import type { Entry } from "#queue/engine.ts";
import { listAt, textAt } from "#wire/json-answer.ts";
import { Answers } from "./answers.ts";
import { entriesIn, MOST_MESSAGES } from "./message.ts";
import type { Queues } from "./queues.ts";

export type Message = { receipt: string; until: number; open: number; isOurs: boolean };
export type Waiting = { entry: Entry; message: Message; isPassedOver?: true };

/** What is to become of an entry: it is the taker's, stays for others, or is for none who take here. */
export type Judge = (entry: Entry) => "take" | "pass" | "home";

export type LaneOptions = {
  queues: Queues;
  rank: number;
  /** Nobody else sees a message for so long. */
  visibleMs: number;
  monotonic: () => number;
  onArrived: () => void;
  /** It holds something that we did not write; it was deleted. */
  onForeign: (rank: number) => void;
};

/** The longest that SQS waits. */
const POLL_SECONDS = 20;
/** A server that does not wait is not asked without end. */
const LEAST_MS = 1_000;
/** Requests at once, while there is much. */
const ABREAST = 4;
/** Of what is visible to nobody else: the rest is for claiming. */
const KEPT_PART = 2 / 3;

export class Lane {
  readonly rank: number;
  readonly #options: LaneOptions;
  readonly #answers: Answers;
  #waiting: Waiting[] = [];
  #wanted = 0;
  #askedAt = 0;
  #polls = 0;
  #hasMuch = false;
  #isClosed = false;
  /** Messages that are neither deleted nor released. */
  readonly #held = new Set<Message>();

  constructor(options: LaneOptions) {
    this.rank = options.rank;
    this.#options = options;
    this.#answers = new Answers(options.queues, options.rank);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get held(): number {
    return this.#held.size;
  }

  /** Up to so many. Of what is passed over so much may stay as leaves room for others; the rest is for home too. */
  take(count: number, judge: Judge): { taken: Waiting[]; homeward: Waiting[] } {
    this.#askedAt = this.#options.monotonic();
    this.#wanted = Math.max(2 * count, MOST_MESSAGES);
    const taken: Waiting[] = [];
    const kept: Waiting[] = [];
    const homeward: Waiting[] = [];
    let passed = 0;
    for (const one of this.#waiting) {
      const isInTime = one.message.until > this.#askedAt;
      const verdict = isInTime && taken.length < count ? judge(one.entry) : undefined;
      if (verdict === "take") taken.push(one);
      else if (verdict === "home" || (verdict === "pass" && ++passed > this.#wanted / 2)) homeward.push(one);
      else kept.push(verdict === "pass" ? { ...one, isPassedOver: true } : one);
    }
    this.#waiting = kept;
    this.#poll();
    return { taken, homeward };
  }

  /** They are claimed, or over, or wait elsewhere. */
  handled(some: readonly Waiting[]): void {
    for (const { message } of some) {
      message.open--;
      if (message.open > 0 || !this.#held.delete(message)) continue;
      this.#answers.delete(message.receipt);
    }
  }

  /** They are open, and for others. */
  putBack(some: readonly Waiting[]): void {
    this.#waiting = [...some.filter(({ message }) => message.isOurs), ...this.#waiting];
  }

  /** What nobody took in time is others', and what nobody who takes here may take is for home: answers with that. */
  tidy(): Waiting[] {
    const now = this.#options.monotonic();
    const isLate = ({ message }: Waiting) => message.until <= now;
    const late = this.#waiting.filter(isLate);
    if (late.length === 0) return [];
    this.#waiting = this.#waiting.filter((one) => !isLate(one));
    if (this.#askedAt < now - KEPT_PART * this.#options.visibleMs) this.#wanted = 0;
    const homeward = late.filter(({ isPassedOver }) => isPassedOver);
    const messages = new Set(homeward.map(({ message }) => message));
    for (const { message } of late) if (!messages.has(message)) this.#release(message);
    return late.filter(({ message }) => messages.has(message));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const message of this.#held) this.#release(message);
    this.#waiting = [];
    await this.#answers.flush();
  }

  #release(message: Message): void {
    message.isOurs = false;
    if (this.#held.delete(message)) this.#answers.release(message.receipt);
  }

  #poll(): void {
    const abreast = this.#hasMuch ? ABREAST : 1;
    while (!this.#isClosed && this.#polls < abreast && this.#waiting.length < this.#wanted) {
      this.#polls++;
      void this.#receive().then((hasMuch) => {
        this.#polls--;
        this.#hasMuch = hasMuch;
        this.#poll();
      });
    }
  }

  /** Whether there seems to be much more. */
  async #receive(): Promise<boolean> {
    const { queues, visibleMs, monotonic, onArrived, onForeign } = this.#options;
    const awayMs = queues.awayMs();
    if (awayMs > 0) await sleep(awayMs, undefined, { ref: false });
    if (this.#isClosed) return false;
    const startedAt = monotonic();
    const asked = {
      MaxNumberOfMessages: MOST_MESSAGES,
      WaitTimeSeconds: POLL_SECONDS,
      VisibilityTimeout: visibleMs / 1000,
    };
    const answer = await queues
      .ask(this.rank, "ReceiveMessage", asked, 1000 * POLL_SECONDS)
      // It is told elsewhere, and tried again when it may be back.
      .catch(() => undefined);
    if (this.#isClosed) return false;
    const messages = listAt(answer, "Messages");
    const tooSoonMs = LEAST_MS - (monotonic() - startedAt);
    if (answer !== undefined && messages.length === 0 && tooSoonMs > 0)
      await sleep(tooSoonMs, undefined, { ref: false });
    const until = monotonic() + KEPT_PART * visibleMs;
    for (const one of messages) {
      const receipt = textAt(one, "ReceiptHandle") ?? "";
      const entries = entriesIn(textAt(one, "Body") ?? "", this.rank);
      if (!entries || entries.length === 0) {
        this.#answers.delete(receipt);
        onForeign(this.rank);
        continue;
      }
      const message = { receipt, until, open: entries.length, isOurs: true };
      this.#held.add(message);
      this.#waiting.push(...entries.map((entry) => ({ entry, message })));
    }
    if (messages.length > 0) onArrived();
    return messages.length >= MOST_MESSAGES / 2;
  }
}
