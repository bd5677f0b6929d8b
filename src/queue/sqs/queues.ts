// The queues, one for each lane: found, or made where they are missing, when something is first asked of them.
//
// State: their addresses, and since when SQS is away. Who asks while it is away is told so at once, and tries again when it may be back.

import { PRIORITIES } from "#domain/priority.ts";
import { at, textAt } from "#wire/json-answer.ts";
import { type Sqs, type SqsAction, SqsError } from "#wire/sqs.ts";

export type Watch = { away(error: unknown): void; back(): void };

export type Queues = {
  /** About the queue of a lane. */
  ask(rank: number, action: SqsAction, body: object, waitMs?: number): Promise<unknown>;
  /** Throws where a queue can be neither found nor made, or will not do. */
  check(): Promise<void>;
  /** For how many milliseconds there is no use in asking. */
  awayMs(): number;
};

/** The longest that SQS has: what waits longer is offered again before that. */
const RETENTION_SECONDS = 14 * 86_400;
/** What is open is offered again after a day. */
const LEAST_SECONDS = 2 * 86_400;
const FIRST_MS = 200;
const LONGEST_MS = 5_000;

export function createQueues(
  sqs: Pick<Sqs, "ask">,
  prefix: string,
  { watch, monotonic, random }: { watch: Watch; monotonic: () => number; random: () => number },
): Queues {
  const urls = new Map<number, Promise<string>>();
  let failures = 0;
  let awayUntil = 0;

  async function ask<Answer>(act: () => Promise<Answer>): Promise<Answer> {
    if (monotonic() < awayUntil) throw new SqsError("SQS is away", { isPassing: true });
    try {
      const answer = await act();
      failures = 0;
      awayUntil = 0;
      watch.back();
      return answer;
    } catch (error) {
      // Many fail at once: they count as one.
      if (monotonic() >= awayUntil) {
        const waitMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures++, 10));
        awayUntil = monotonic() + waitMs * (0.5 + random() / 2);
      }
      watch.away(error);
      throw error;
    }
  }

  function urlOf(rank: number): Promise<string> {
    const known = urls.get(rank);
    if (known) return known;
    const found = findOrMake(sqs, `${prefix}-${PRIORITIES[rank]}`);
    urls.set(rank, found);
    found.catch(() => urls.delete(rank));
    return found;
  }

  return {
    ask: (rank, action, body, waitMs) =>
      ask(async () => {
        try {
          return await sqs.ask(action, { QueueUrl: await urlOf(rank), ...body }, waitMs);
        } catch (error) {
          // Somebody deleted it: next time it is made again.
          if (isMissing(error)) urls.delete(rank);
          throw error;
        }
      }),
    async check() {
      for (const rank of PRIORITIES.keys()) await ask(() => urlOf(rank));
    },
    awayMs: () => Math.max(0, awayUntil - monotonic()),
  };
}

const isMissing = (error: unknown): boolean =>
  error instanceof SqsError && /QueueDoesNotExist|NonExistentQueue/.test(error.code ?? "");

async function findOrMake(sqs: Pick<Sqs, "ask">, name: string): Promise<string> {
  const found = await sqs.ask("GetQueueUrl", { QueueName: name }).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  const url = textAt(found, "QueueUrl") ?? (await make(sqs, name));
  const asked = { QueueUrl: url, AttributeNames: ["All"] };
  const attributes = at(await sqs.ask("GetQueueAttributes", asked), "Attributes");
  const seconds = Number(at(attributes, "MessageRetentionPeriod") ?? RETENTION_SECONDS);
  if (seconds < LEAST_SECONDS) throw unfit(name, `keeps messages for ${seconds} s, and two days are the least`);
  if (at(attributes, "RedrivePolicy")) throw unfit(name, "has a dead-letter queue, and must have none");
  return url;
}

const unfit = (name: string, why: string) =>
  new SqsError(`the queue ${name} of SQS ${why}`, { code: "Unfit", isPassing: false });

async function make(sqs: Pick<Sqs, "ask">, name: string): Promise<string> {
  const Attributes = { MessageRetentionPeriod: String(RETENTION_SECONDS) };
  const made = await sqs.ask("CreateQueue", { QueueName: name, Attributes }).catch((error: unknown) => {
    if (!(error instanceof SqsError) || error.isPassing) throw error;
    const { code, message } = error;
    throw new SqsError(`there is no queue ${name}, and it could not be made: ${message}`, { code, isPassing: false });
  });
  const url = textAt(made, "QueueUrl");
  if (url === undefined) throw new SqsError("SQS answered without the address of a queue", { isPassing: true });
  return url;
}
