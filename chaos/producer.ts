// The senders: real HTTP requests of every kind, each with an idempotency key, and a note of what each was promised.
//
// A request whose answer is lost is sent again with the same key, as a client should; some are left unknown on
// purpose, since those must be wholly there or wholly absent. State: what was promised, and what is under way.

import { setTimeout as sleep } from "node:timers/promises";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { Cancelled, LedgerReading, Promised } from "./history.ts";

export type ProducerOptions = {
  url: () => string | undefined;
  apiKey: string;
  /** Fixes what is sent, in order; apart from the pauses, which are drawn at times the machine decides. */
  shaping: () => number;
  random: () => number;
  /** HTTP requests a second; one in twelve is a batch. */
  callsPerSecond: number;
  maxBackoffMs: number;
};

export type Producer = {
  promised: Promised[];
  cancelled: Cancelled[];
  ledgers: LedgerReading[];
  counts: { calls: number; lostAnswers: number; replays: number };
  /** Lets what is under way end. */
  stop(): Promise<void>;
  readLedger(): Promise<void>;
};

const ANSWER_MS = 8_000;
const MOST_UNDER_WAY = 60;
const TRIES = 4;
const LEDGER_MS = 600;
/** Answers that promise that nothing was stored. Any other 5xx promises nothing. */
const SURE_REFUSALS = ["OVERLOADED", "SHUTTING_DOWN"];

type Answer = { status: number; body: { [name: string]: unknown } };

export function startProducer(options: ProducerOptions): Producer {
  const { url, apiKey, shaping, random, callsPerSecond, maxBackoffMs } = options;
  const promised: Promised[] = [];
  const cancelled: Cancelled[] = [];
  const ledgers: LedgerReading[] = [];
  const counts = { calls: 0, lostAnswers: 0, replays: 0 };
  const underWay = new Set<Promise<void>>();
  let isStopped = false;

  /** Undefined when no answer came. */
  async function ask(method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    const base = url();
    if (base === undefined) return undefined;
    try {
      const answer = await fetch(base + path, {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return { status: answer.status, body: (await answer.json()) as Answer["body"] };
    } catch {
      return undefined;
    }
  }

  async function send(calls: Promised[], tries: number): Promise<void> {
    const requests = calls.map(({ request }) => request);
    let mayBeStored = false;
    for (let n = 1; n <= tries; n++) {
      const wasReached = url() !== undefined;
      const answer =
        requests.length > 1
          ? await ask("POST", "/v1/notifications/batch", { notifications: requests })
          : await ask("POST", "/v1/notifications", requests[0]);
      const results = requests.length > 1 ? (answer?.body.results as Answer["body"][] | undefined) : [answer?.body];
      for (const [index, one] of calls.entries()) note(one, answer, results?.[index], mayBeStored);
      if (calls.every(({ answer }) => answer.kind !== "unknown")) return;
      mayBeStored ||= wasReached;
      counts.lostAnswers++;
      await sleep(100 + random() * 400);
    }
  }

  function note(one: Promised, answer: Answer | undefined, result: Answer["body"] | undefined, mayBeStored: boolean) {
    const id = result?.notificationId;
    const error = (result?.error ?? result) as Answer["body"] | undefined;
    if (answer && answer.status < 300 && typeof id === "string") {
      const before = one.answer.kind === "acknowledged" ? one.answer.ids : [];
      one.answer = { kind: "acknowledged", ids: [...before, id] };
    } else if (one.answer.kind === "unknown" && answer && !mayBeStored) {
      const code = String(error?.code);
      if (answer.status < 500 || SURE_REFUSALS.includes(code)) one.answer = { kind: "refused", code };
    }
  }

  async function call(): Promise<void> {
    counts.calls++;
    const isBatch = shaping() < 1 / 12;
    const name = `call ${counts.calls}`;
    const calls = Array.from({ length: isBatch ? 2 + Math.floor(shaping() * 24) : 1 }, (_, index): Promised => {
      const key = `${name}, number ${index}`;
      return { call: name, key, request: makeRequest(key, shaping, maxBackoffMs), answer: { kind: "unknown" } };
    });
    const isLeftUnknown = shaping() < 0.3;
    const cancels = shaping() < 0.06;
    const repeats = shaping() < 0.04;
    promised.push(...calls);
    await send(calls, isLeftUnknown ? 1 : TRIES);
    if (repeats && !isBatch && calls[0]?.answer.kind === "acknowledged") {
      counts.replays++;
      await send(calls, 1);
    }
    if (cancels && calls[0]?.answer.kind === "acknowledged") await cancel(calls[0].answer.ids[0] as string);
  }

  async function cancel(id: string): Promise<void> {
    await sleep(random() * 400);
    const answer = await ask("POST", `/v1/notifications/${id}/cancel`);
    const kind = answer?.status === 200 ? "cancelled" : answer?.status === 409 ? "too-late" : "unknown";
    cancelled.push({ id, at: Date.now(), answer: kind });
  }

  async function readLedger(): Promise<void> {
    const at = Date.now();
    const answer = await ask("GET", "/v1/ledger");
    if (answer?.status !== 200) return;
    const { balanced, accepted } = answer.body;
    ledgers.push({ at, isBalanced: balanced === true, accepted: Number(accepted), body: JSON.stringify(answer.body) });
  }

  function begin(work: Promise<void>): void {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }

  async function produce(): Promise<void> {
    const startedAt = performance.now();
    for (let n = 0; !isStopped; n++) {
      await sleep(Math.max(0, startedAt + (n * 1000) / callsPerSecond - performance.now()));
      // What cannot be sent is not sent: a sender with a bound, not a flood after every outage.
      if (underWay.size < MOST_UNDER_WAY && url() !== undefined) begin(call());
    }
  }
  async function audit(): Promise<void> {
    while (!isStopped) {
      await readLedger();
      await sleep(LEDGER_MS);
    }
  }
  const running = [produce(), audit()];

  return {
    promised,
    cancelled,
    ledgers,
    counts,
    readLedger,
    async stop() {
      isStopped = true;
      await Promise.all([...running, ...underWay]);
    },
  };
}

function makeRequest(key: string, random: () => number, maxBackoffMs: number): NotificationRequest {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const chance = random();
  const onAmbiguous = chance < 0.15 ? "hold" : chance < 0.25 ? "reconcile" : chance < 0.35 ? "resend" : undefined;
  const dueInMs = random() < 0.1 ? 300 + random() * 1_500 : undefined;
  const livesMs = random() < 0.08 ? 400 + random() * 6_000 + (dueInMs ?? 0) : undefined;
  const maxAttempts = pick([undefined, 1, 2, 4, 8]);
  const after = (waitMs: number) => new Date(Date.now() + waitMs).toISOString();
  return {
    channel: "email",
    recipient: { email: "ada@example.com" },
    content: { subject: key, textBody: "Hello" },
    priority: pick(PRIORITIES),
    idempotencyKey: key,
    retryPolicy: {
      ...(maxAttempts !== undefined && { maxAttempts }),
      backoffMultiplier: pick([1, 2, 3]),
      maxBackoffMs: pick([maxBackoffMs / 2, maxBackoffMs]),
    },
    ...(onAmbiguous && { onAmbiguous }),
    ...(dueInMs !== undefined && { scheduledFor: after(dueInMs) }),
    ...(livesMs !== undefined && { expiresAt: after(livesMs) }),
  };
}
