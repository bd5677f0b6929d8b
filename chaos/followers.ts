// Those who follow the facts from outside, page by page or by a stream, and are killed now and then.
//
// A follower handles facts one by one and stores how far it has come only afterwards; killed in between, it begins again where it
// had stored, and handles some a second time. A reading is what one of its lives was told, in order, and after which fact.
// State: the readings, and how far each follower has come.

import { setTimeout as sleep } from "node:timers/promises";
import { openStream } from "../test/support/event-stream.ts";
import type { FactRow, Reading } from "./history.ts";

export type Following = { name: string; tenant: string; apiKey: string; kind: "poll" | "stream"; types?: string[] };

export type FollowersOptions = {
  url: () => string | undefined;
  followings: readonly Following[];
  random: () => number;
};

export type Followers = {
  readings: Reading[];
  /** Once nothing happens any more: everything that there is to be told, by tenant, and all have been told it, or `ms` are over. */
  finish(ms: number): Promise<{ [tenant: string]: FactRow[] }>;
  stop(): Promise<void>;
};

const PAGE = 50;
/** Once nothing happens any more: on a busy machine a follower may be thousands behind by then. */
const LAST_PAGE = 1000;
const POLL_MS = 150;
const ANSWER_MS = 8_000;
/** On a busy machine an answer may take longer. */
const MOST_TRIES = 10;
/** How likely one is killed with a page, or an event of a stream, in its hands. */
const KILLED_WITH_PAGE = 0.15;
const KILLED_WITH_EVENT = 0.01;
/** Once nothing happens any more: each life begins with a request, and on a busy machine a stream is as far behind as pages are. */
const LAST_KILLED_WITH_EVENT = 0.0005;

type Page = { data: FactRow[]; next: string };
/** What was stored: the position to go on from, and the fact that it came with. */
type Stored = { position: string | undefined; fact: string | undefined };
const NOTHING: Stored = { position: undefined, fact: undefined };

export function startFollowers({ url, followings, random }: FollowersOptions): Followers {
  const readings: Reading[] = [];
  const ending = new AbortController();
  const stores = new Map<Following, Stored>();
  let isStopped = false;
  let page = PAGE;

  /** Undefined when no answer came. */
  async function askPage(following: Following, after: string | undefined, limit: number): Promise<Page | undefined> {
    const base = url();
    if (base === undefined) return undefined;
    try {
      const answer = await fetch(`${base}/v1/events?${query(following, after)}&limit=${limit}`, {
        headers: { authorization: `Bearer ${following.apiKey}` },
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      if (answer.status === 200) return (await answer.json()) as Page;
      if (answer.status < 500) begin(following, after).refusal = `${answer.status} ${await answer.text()}`;
    } catch {
      // Whoever answers was killed, or cannot reach the database.
    }
    return undefined;
  }

  function begin({ name, tenant, types }: Following, after: string | undefined): Reading {
    const reading: Reading = { follower: name, tenant, ...(types && { types }), after, facts: [] };
    readings.push(reading);
    return reading;
  }

  async function poll(following: Following): Promise<void> {
    const { position, fact } = stores.get(following) ?? NOTHING;
    const answer = await askPage(following, position, page);
    if (!answer) return;
    const { data, next } = answer;
    const reading = begin(following, fact);
    const killedAfter = random() < KILLED_WITH_PAGE ? Math.floor(random() * data.length) : undefined;
    reading.facts.push(...data.slice(0, killedAfter));
    if (killedAfter === undefined) stores.set(following, { position: next, fact: data.at(-1)?.id ?? fact });
  }

  /** One life. */
  async function stream(following: Following): Promise<void> {
    const { position, fact } = stores.get(following) ?? NOTHING;
    const base = url();
    if (base === undefined) return;
    const opened = await openStream(`${base}/v1/events?${query(following, position)}`, {
      authorization: `Bearer ${following.apiKey}`,
      accept: "text/event-stream",
    });
    const reading = begin(following, fact);
    if (opened.status !== 200 && opened.status < 500) reading.refusal = JSON.stringify(opened.problem);
    ending.signal.addEventListener("abort", opened.close, { once: true });
    try {
      for (;;) {
        const { name, data, id: position } = await opened.next();
        if (name === "reset") reading.refusal = data;
        const fact = JSON.parse(data) as FactRow;
        reading.facts.push(fact);
        if (random() < (page === PAGE ? KILLED_WITH_EVENT : LAST_KILLED_WITH_EVENT)) return;
        stores.set(following, { position, fact: fact.id });
      }
    } finally {
      ending.signal.removeEventListener("abort", opened.close);
      opened.close();
    }
  }

  async function follow(following: Following): Promise<void> {
    const live = following.kind === "poll" ? poll : stream;
    // A stream that breaks off is one more way to be killed.
    for (; !isStopped; await sleep(POLL_MS)) await live(following).catch(() => undefined);
  }
  const running = followings.map(follow);
  const stop = async () => {
    isStopped = true;
    ending.abort();
    await Promise.all(running);
  };

  async function readAll({ types: _, ...following }: Following): Promise<FactRow[]> {
    const all: FactRow[] = [];
    let tries = 0;
    for (let after: string | undefined; ; ) {
      const page = await askPage(following, after, LAST_PAGE);
      if (!page && ++tries > MOST_TRIES) throw new Error(`the feed of ${following.tenant} cannot be read`);
      if (!page) continue;
      all.push(...page.data);
      if (page.next === after) return all;
      after = page.next;
    }
  }

  return {
    readings,
    stop,
    async finish(ms) {
      const deadline = Date.now() + ms;
      page = LAST_PAGE;
      const feeds: { [tenant: string]: FactRow[] } = {};
      for (const one of followings) feeds[one.tenant] ??= await readAll(one);
      const isBehind = (one: Following): boolean =>
        stores.get(one)?.fact !== feeds[one.tenant]?.findLast(({ type }) => one.types?.includes(type) ?? true)?.id;
      while (Date.now() < deadline && followings.some(isBehind)) await sleep(POLL_MS);
      await stop();
      return feeds;
    },
  };
}

/** Without a position a stream begins now. */
const query = ({ types }: Following, after: string | undefined): URLSearchParams =>
  new URLSearchParams({
    ...(after === undefined ? { since: "2000-01-01T00:00:00Z" } : { after }),
    ...(types && { types: types.join(",") }),
  });
