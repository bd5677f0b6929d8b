// The senders: real HTTP requests of every kind, each with an idempotency key, and a note of what each was promised.
//
// A request whose answer is lost is sent again with the same key, as a client should; some are left unknown on
// purpose, since those must be wholly there or wholly absent. State: what was promised, and what is under way.

import { setTimeout as sleep } from "node:timers/promises";
import type { Cancelled, LedgerReading, Promised } from "./history.ts";
import { type Given, makeFlood, makeFloodRequest, makeRequest } from "./requests.ts";

/** `flood`: how many it sends at once when there is a flood. */
export type Sender = { name: string; apiKey: string; flood: number };

export type ProducerOptions = {
  url: () => string | undefined;
  tenants: readonly Sender[];
  /** Fixes what is sent, in order; apart from the pauses, which are drawn at times the machine decides. */
  shaping: () => number;
  random: () => number;
  /** HTTP requests a second; one in twelve is a batch, and after so many of them there is a flood. */
  callsPerSecond: number;
  given: (tenant: string) => Given;
};

export type Producer = {
  promised: Promised[];
  cancelled: Cancelled[];
  ledgers: LedgerReading[];
  counts: { calls: number; lostAnswers: number; replays: number };
  /** Lets what is under way end. */
  stop(): Promise<void>;
  readLedgers(): Promise<void>;
};

const ANSWER_MS = 8_000;
const MOST_UNDER_WAY = 60;
const TRIES = 4;
const LEDGER_MS = 600;
const CALLS_PER_FLOOD = 120;
/** Answers that promise that nothing was stored. Any other 5xx promises nothing. */
const SURE_REFUSALS = ["OVERLOADED", "SHUTTING_DOWN"];

type Answer = { status: number; body: { [name: string]: unknown } };

export function startProducer(options: ProducerOptions): Producer {
  const { url, tenants, shaping, random, callsPerSecond, given } = options;
  const promised: Promised[] = [];
  const cancelled: Cancelled[] = [];
  const ledgers: LedgerReading[] = [];
  const counts = { calls: 0, lostAnswers: 0, replays: 0 };
  const underWay = new Set<Promise<void>>();
  let isStopped = false;

  const keys = new Map(tenants.map(({ name, apiKey }) => [name, apiKey]));
  /** Undefined when no answer came. */
  async function ask(tenant: string, method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    const base = url();
    if (base === undefined) return undefined;
    try {
      const answer = await fetch(base + path, {
        method,
        headers: {
          authorization: `Bearer ${keys.get(tenant)}`,
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
    const tenant = calls[0]?.tenant ?? "";
    let mayBeStored = false;
    for (let n = 1; n <= tries; n++) {
      const wasReached = url() !== undefined;
      const answer =
        requests.length > 1
          ? await ask(tenant, "POST", "/v1/notifications/batch", { notifications: requests })
          : await ask(tenant, "POST", "/v1/notifications", requests[0]);
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
    const tenant = tenants[Math.floor(shaping() * tenants.length)]?.name ?? "";
    const calls = Array.from({ length: isBatch ? 2 + Math.floor(shaping() * 24) : 1 }, (_, index): Promised => {
      const key = `${name}, number ${index}`;
      return {
        call: name,
        key,
        tenant,
        request: makeRequest(key, shaping, given(tenant)),
        answer: { kind: "unknown" },
      };
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
    if (cancels && calls[0]?.answer.kind === "acknowledged") await cancel(tenant, calls[0].answer.ids[0] as string);
  }

  /** All of them at once, in one lane and one way: they have to take turns. */
  async function flood(n: number): Promise<void> {
    const kind = makeFlood(n);
    await Promise.all(
      tenants.map(async ({ name: tenant, flood: count }) => {
        const call = `flood ${n} of ${tenant}`;
        const calls = Array.from({ length: count }, (_, index): Promised => {
          const key = `${call}, number ${index}`;
          return { call, key, tenant, request: makeFloodRequest(key, kind), answer: { kind: "unknown" } };
        });
        promised.push(...calls);
        await send(calls, TRIES);
      }),
    );
  }

  async function cancel(tenant: string, id: string): Promise<void> {
    await sleep(random() * 400);
    const answer = await ask(tenant, "POST", `/v1/notifications/${id}/cancel`);
    const kind = answer?.status === 200 ? "cancelled" : answer?.status === 409 ? "too-late" : "unknown";
    cancelled.push({ id, at: Date.now(), answer: kind });
  }

  async function readLedger(tenant: string): Promise<void> {
    const at = Date.now();
    const answer = await ask(tenant, "GET", "/v1/ledger");
    if (answer?.status !== 200) return;
    const { balanced, accepted } = answer.body;
    const body = JSON.stringify(answer.body);
    ledgers.push({ tenant, at, isBalanced: balanced === true, accepted: Number(accepted), body });
  }
  const readLedgers = async () => void (await Promise.all(tenants.map(({ name }) => readLedger(name))));

  function begin(work: Promise<void>): void {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }

  async function produce(): Promise<void> {
    const startedAt = performance.now();
    let floods = 0;
    for (let n = 0; !isStopped; n++) {
      await sleep(Math.max(0, startedAt + (n * 1000) / callsPerSecond - performance.now()));
      // What cannot be sent is not sent: a sender with a bound, not a flood after every outage.
      if (underWay.size >= MOST_UNDER_WAY || url() === undefined) continue;
      begin(call());
      if (counts.calls % CALLS_PER_FLOOD === CALLS_PER_FLOOD / 2) begin(flood(floods++));
    }
  }
  async function audit(): Promise<void> {
    while (!isStopped) {
      await readLedgers();
      await sleep(LEDGER_MS);
    }
  }
  const running = [produce(), audit()];

  return {
    promised,
    cancelled,
    ledgers,
    counts,
    readLedgers,
    async stop() {
      isStopped = true;
      await Promise.all([...running, ...underWay]);
    },
  };
}
