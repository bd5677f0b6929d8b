// Offers to the queue of a lane: what comes while requests are under way goes together in the next, ten messages of a hundred entries at most.
//
// State: the entries that are still to be sent.

import type { Entry } from "#queue/engine.ts";
import { listAt, textAt } from "#wire/json-answer.ts";
import { SqsError } from "#wire/sqs.ts";
import { bodyOf, MOST_ENTRIES, MOST_MESSAGES } from "./message.ts";
import type { Queues } from "./queues.ts";

/** Who offers a few at a time shares his messages with others rather than requests with nobody. */
const ABREAST = 2;

type Offered = { left: number; resolve: () => void; reject: (error: unknown) => void };
type Unsent = { entry: Entry; offered: Offered };

export class Sending {
  readonly #queues: Queues;
  readonly #rank: number;
  #unsent: Unsent[] = [];
  #underWay = 0;

  constructor(queues: Queues, rank: number) {
    this.#queues = queues;
    this.#rank = rank;
  }

  /** Rejects where one of them may not have been sent. */
  offer(entries: readonly Entry[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const offered = { left: entries.length, resolve, reject };
      this.#unsent.push(...entries.map((entry) => ({ entry, offered })));
      this.#send();
    });
  }

  #send(): void {
    while (this.#underWay < ABREAST && this.#unsent.length > 0) {
      const some = this.#unsent.splice(0, MOST_ENTRIES * MOST_MESSAGES);
      this.#underWay++;
      void this.#request(some).finally(() => {
        this.#underWay--;
        this.#send();
      });
    }
  }

  async #request(some: readonly Unsent[]): Promise<void> {
    const messages = inMessages(some);
    const Entries = messages.map((message, n) => ({
      Id: `${n}`,
      MessageBody: bodyOf(message.map(({ entry }) => entry)),
    }));
    try {
      const answer = await this.#queues.ask(this.#rank, "SendMessageBatch", { Entries });
      const failed = new Map(listAt(answer, "Failed").map((one) => [textAt(one, "Id"), textAt(one, "Code")]));
      for (const [n, message] of messages.entries()) {
        if (!failed.has(`${n}`)) arrived(message);
        else lost(message, new SqsError(`SQS did not take a message: ${failed.get(`${n}`)}`, { isPassing: true }));
      }
    } catch (error) {
      lost(some, error);
    }
  }
}

/** As few as hold them. */
function inMessages(some: readonly Unsent[]): Unsent[][] {
  const messages: Unsent[][] = [];
  for (let n = 0; n < some.length; n += MOST_ENTRIES) messages.push(some.slice(n, n + MOST_ENTRIES));
  return messages;
}

function arrived(message: readonly Unsent[]): void {
  for (const { offered } of message) {
    offered.left--;
    if (offered.left === 0) offered.resolve();
  }
}

function lost(message: readonly Unsent[], error: unknown): void {
  for (const { offered } of message) offered.reject(error);
}
