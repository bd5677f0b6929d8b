// Those who are called back: a server for each endpoint, and one for the URLs that requests name. They are never killed.
//
// Each answers well, and now and then in another way: by turns, so that a short run meets them all. Policies wait for half a minute and more
// before another try, so the harness brings what waits to its next try sooner; turns in line it leaves alone.
// State: what came, and how many came to each.

import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { REQUESTS } from "#domain/endpoint.ts";
import { startReceiver } from "../test/support/callback-receiver.ts";
import type { CalledEndpoint, Post } from "./history.ts";
import { withClient } from "./journal.ts";

export type ReceiversOptions = {
  /** Of the api, which runs. */
  apiUrl: string;
  databaseUrl: string;
  /** Keys that may make endpoints. */
  tenants: readonly { name: string; adminKey: string }[];
  random: () => number;
};

export type Receivers = {
  endpoints: CalledEndpoint[];
  posts: Post[];
  /** For a request of that tenant. */
  callbackUrl(tenant: string): string;
  /** Once nothing goes wrong any more: everybody answers well, and this resolves when all have been told everything, or `ms` are over. */
  finish(ms: number): Promise<void>;
  stop(): Promise<void>;
};

type Plan = Pick<CalledEndpoint, "events" | "fifo"> & { policy: string };

/** Few are cancelled or fail: one line for all of an endpoint has to keep up. */
const PLANS: readonly Plan[] = [
  { events: ["sent", "retrying", "failed", "ambiguous", "cancelled"], fifo: null, policy: "aggressive" },
  { events: ["failed", "ambiguous", "cancelled"], fifo: "endpoint", policy: "best_effort" },
  { events: ["accepted", "retrying", "sent", "failed", "expired"], fifo: "notification", policy: "aggressive" },
];

/** The second of each twenty and so on. `lost`: taken, and the connection is cut; `none`: taken, and never answered. */
const MOODS: { [n: number]: number | "none" | "lost" } = { 2: 500, 5: "lost", 9: "none", 13: 400, 17: 429 };
const CYCLE = 20;
const HURRY_MS = 500;

export async function startReceivers(options: ReceiversOptions): Promise<Receivers> {
  const { apiUrl, databaseUrl, tenants, random } = options;
  const posts: Post[] = [];
  let isCalm = false;
  let isStopped = false;

  async function open() {
    let count = 0;
    return startReceiver(({ path, headers, raw: body }, response) => {
      const header = (name: string) => String(headers[`webhook-${name}`]);
      const [id, timestamp, signature] = [header("id"), header("timestamp"), header("signature")];
      const post: Post = { at: Date.now(), path, id, timestamp, signature, body, status: 0 };
      posts.push(post);
      const mood = isCalm ? 204 : (MOODS[count++ % CYCLE] ?? 204);
      setTimeout(() => void answer(post, mood, response), 5 + random() * 55);
    });
  }

  async function ask(adminKey: string, path: string, body: object): Promise<CalledEndpoint> {
    const answer = await fetch(apiUrl + path, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`no endpoint: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as CalledEndpoint;
  }

  const endpoints: CalledEndpoint[] = [];
  const named = await open();
  const servers = [named];
  for (const [n, { name: tenant, adminKey }] of tenants.entries()) {
    const { policy, ...plan } = PLANS[n % PLANS.length] as Plan;
    const server = await open();
    servers.push(server);
    const path = `/${tenant}`;
    const { fifo, events } = plan;
    const asked = { url: server.url + path, events, policy, ...(fifo && { fifo }) };
    const { id, secret, publicKey } = await ask(adminKey, "/v1/endpoints", asked);
    endpoints.push({ id, tenant, path, ...plan, secret, publicKey });
    const own = await ask(adminKey, `/v1/endpoints/${REQUESTS}/rotate`, { keepSeconds: 0 });
    const requests = { id: REQUESTS, path: `/${REQUESTS}/${tenant}`, events: null, fifo: null };
    endpoints.push({ tenant, ...requests, secret: own.secret, publicKey: own.publicKey });
  }

  async function hurry(): Promise<void> {
    // The server may be down.
    for (; !isStopped; await sleep(HURRY_MS))
      await withClient(databaseUrl, (db) => db.query(HURRY)).catch(() => undefined);
  }
  const hurrying = hurry();

  return {
    endpoints,
    posts,
    callbackUrl: (tenant) => `${named.url}/${REQUESTS}/${tenant}`,
    async finish(ms) {
      isCalm = true;
      const isDone = () =>
        withClient(databaseUrl, async (db) => (await db.query<{ is: boolean }>(DONE)).rows[0]?.is === true);
      for (const deadline = Date.now() + ms; Date.now() < deadline && !(await isDone().catch(() => false)); )
        await sleep(100);
    },
    async stop() {
      isStopped = true;
      await hurrying;
      for (const server of servers) server.close();
    },
  };
}

function answer(post: Post, mood: number | "none" | "lost", response: ServerResponse): void {
  if (mood === "none") return;
  if (mood === "lost") {
    response.destroy();
    return;
  }
  post.status = mood;
  response.writeHead(mood).end();
}

/** Who stands in line waits for a time that never comes, and for its turn. */
const HURRY = `update carillon.later set due_at = carillon.now()
  where priority = 4 and due_at > carillon.now() and due_at < timestamptz '9999-12-31 00:00Z'`;

/** All that happened was read, and all that was made of it has ended. */
const DONE = `select not exists (
    select from carillon.feed f left join carillon.followers w on w.name = 'callbacks'
    where w.name is null or (f.key, f.seq) > (w.key, w.seq) or ((f.key, f.seq) = (w.key, w.seq) and w.ordinal < f.size)
  ) and not exists (select from carillon.ready where tenant < 0) and not exists (select from carillon.leased where tenant < 0)
    and not exists (select from carillon.later where tenant < 0) as is`;
