// Several replicas, one Slack workspace: neither duplicates nor throttling, with limits and locks on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { resolveLimits } from "#config/limits.ts";
import type { Config } from "#config/read.ts";
import { burstOf, intervalMs, type Rate } from "#domain/gcra.ts";
import type { StandIn } from "../support/scripted.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const RATE: Rate = { per: "second", most: 4 };
const SIGNALS = 24;

let slack: StandIn;
const arrivals: { at: number; text: string }[] = [];
const replicas: Service[] = [];

before(async () => {
  slack = await startStandIn();
  slack.answer(({ body }) => {
    arrivals.push({ at: performance.now(), text: JSON.parse(body).text });
    return { status: 200, body: { ok: true, channel: "C1", ts: String(arrivals.length) } };
  });
  const providers: Config["providers"] = { workspace: { type: "slack", token: "xoxb-test", apiUrl: slack.url } };
  const given = { providers: { workspace: { account: [RATE] } } };
  const { limits, faults } = resolveLimits(given, providers);
  assert.deepEqual(faults, []);
  const shared: Partial<Config> = {
    roles: ["api", "worker", "scheduler", "keeper"],
    providers,
    routes: { slack: "workspace" } as Config["routes"],
    limits,
    locks: { kind: "postgres", channels: ["slack"] },
  };
  const first = await startService(shared);
  replicas.push(first);
  const { databaseUrl } = first;
  replicas.push(await startService({ ...shared, databaseUrl }), await startService({ ...shared, databaseUrl }));
});
after(async () => {
  for (const replica of replicas.reverse()) await replica.stop();
  await slack.close();
});

const signal = (text: string) => ({ channel: "slack", recipient: { slackChannel: "C1" }, content: { body: text } });

test("signals sent at once over three replicas arrive once each, never faster than the workspace allows", async () => {
  const startedAt = performance.now();
  const ids = await Promise.all(
    Array.from({ length: SIGNALS }, async (_, n) => {
      const replica = replicas[n % replicas.length] as Service;
      const { body } = await replica.ask("POST", "/v1/notifications", signal(`signal ${n}`));
      return body.notificationId as string;
    }),
  );
  const [first] = replicas as [Service];
  for (const id of ids) {
    const record = await until(async () => {
      const found = await ask(first, `/v1/notifications/${id}`);
      return found.status === "sent" ? found : undefined;
    }, 40_000);
    assert.equal(record.attempts.length, 1, "waiting for a limit spends no attempt");
  }
  const mine = arrivals.filter(({ text }) => text.startsWith("signal"));
  assert.deepEqual(
    mine.map(({ text }) => text).sort(),
    Array.from({ length: SIGNALS }, (_, n) => `signal ${n}`).sort(),
  );
  // What is granted in good order may bunch on its way through a busy machine, but nothing comes before its turn.
  for (const [n, { at }] of mine.entries()) {
    const most = burstOf(RATE) + (at - startedAt) / intervalMs(RATE);
    assert.ok(n + 1 <= most + 1, `${n + 1} in ${at - startedAt} ms`);
  }
});

test("a delivery whose lock another holds is left to it, and taken up when the other is gone", async () => {
  const [first] = replicas as [Service];
  const later = new Date(Date.now() + 1_500).toISOString();
  const { body } = await first.ask("POST", "/v1/notifications", { ...signal("held"), scheduledFor: later });
  const id = body.notificationId;
  await first.db.query(
    `insert into carillon.locks (key, holder, token, until) values ($1, 'somebody else', 999, clock_timestamp() + interval '4 s')`,
    [id],
  );
  const postponed = await until(async () => {
    const { events } = await ask(first, `/v1/notifications/${id}`);
    return events.find(({ type }: { type: string }) => type === "postponed");
  });
  assert.match(JSON.stringify(postponed), /lock/);
  assert.ok(!arrivals.some(({ text }) => text === "held"));
  const record = await until(async () => {
    const found = await ask(first, `/v1/notifications/${id}`);
    return found.status === "sent" ? found : undefined;
  }, 40_000);
  assert.equal(record.attempts.length, 1);
  assert.equal(arrivals.filter(({ text }) => text === "held").length, 1);
});
