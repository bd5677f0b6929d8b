// The server that leads is lost, and a synchronous standby takes its place: everything goes on by itself, on the other one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openStream } from "../support/event-stream.ts";
import { type Ends, inReverse } from "../support/in-reverse.ts";
import { type Replicated, replicatedServers } from "../support/replicated.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const note = { channel: "inbox", recipient: { userId: "ada" }, content: { title: "Hello", body: "Hello" } };
/** Ten seconds are what is promised of a machine with time to spare. */
const LONGEST_MS = 60_000;

const losses: [string, (servers: Replicated) => void][] = [
  ["killed", ({ first }) => first.kill()],
  ["silent, its connections open", ({ first }) => first.proxy.hang()],
];
for (const [how, lose] of losses) {
  test(`the leading server is ${how}: sends, deliveries, ticks and streams go on at the other`, async (context) => {
    const t = inReverse(context);
    const servers = await replicatedServers(t);
    const service = await startService({
      databaseUrl: servers.url,
      roles: ["api", "worker", "scheduler", "keeper", "stream"],
    });
    t.after(service.stop);
    const { status, body } = await service.ask("PUT", "/v1/schedules/tick", {
      cron: "* * * * * *",
      notification: note,
    });
    assert.equal(status, 200, JSON.stringify(body));
    const before = await sent(service, "before");
    await arrived(t, service, before);
    await tickSince(service, 0);

    lose(servers);
    await servers.promote();
    const lostAt = Date.now();
    const took: { [what: string]: number } = {};
    const noting = async (what: string, happening: Promise<unknown>) => {
      await happening;
      took[what] = Date.now() - lostAt;
    };
    const sending = sent(service, "after");
    await Promise.all([
      noting("first 2xx", sending),
      noting(
        "delivered and streamed",
        sending.then((id) => arrived(t, service, id)),
      ),
      noting("tick", tickSince(service, lostAt)),
    ]);
    context.diagnostic(`milliseconds after the promotion: ${JSON.stringify(took)}`);
    assert.equal((await service.ask("GET", `/v1/notifications/${before}`)).status, 200, "what was accepted is there");
    const { body: ledger } = await service.ask("GET", "/v1/ledger");
    assert.equal(ledger.balanced, true, JSON.stringify(ledger));
  });
}

/** As a sender would: again with the same key until it is accepted. */
async function sent(service: Service, idempotencyKey: string): Promise<string> {
  return until(async () => {
    const { status, body } = await service.ask("POST", "/v1/notifications", { ...note, idempotencyKey });
    if (status === 503) return undefined;
    assert.ok(status === 202 || status === 200, JSON.stringify(body));
    return body.notificationId as string;
  }, LONGEST_MS);
}

/** As a browser would: a stream that ends is opened anew from where it was. */
async function arrived(t: Ends, service: Service, id: string): Promise<void> {
  const deadline = performance.now() + LONGEST_MS;
  await until(async () => {
    const headers = { authorization: `Bearer ${service.key}` };
    const stream = await openStream(`${service.url}/v1/inbox/ada/stream?after=0:0`, headers);
    t.after(stream.close);
    if (stream.status !== 200) return undefined;
    try {
      while (performance.now() < deadline) {
        const { data } = await stream.next("notification");
        if (JSON.parse(data).id === id) return true;
      }
      return undefined;
    } catch {
      return undefined;
    } finally {
      stream.close();
    }
  }, LONGEST_MS);
}

async function tickSince(service: Service, sinceMs: number): Promise<void> {
  await until(async () => {
    const { status, body } = await service.ask("GET", "/v1/schedules/tick/runs?limit=1");
    if (status !== 200) return undefined;
    return body.data.some(({ tick }: { tick: string }) => Date.parse(tick) > sinceMs) ? true : undefined;
  }, LONGEST_MS);
}
