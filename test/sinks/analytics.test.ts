// The questions of docs/analytics.md, each asked of facts of which the answer is known.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { load } from "js-yaml";
import { readConfig } from "#config/read.ts";
import type { FactDetail, FactType } from "#domain/fact.ts";
import { createIds } from "#domain/ids.ts";
import { openClickHouse } from "#sinks/clickhouse.ts";
import { SINKS } from "#sinks/settings.ts";
import type { Told } from "#sinks/sink.ts";
import { NO_CLICKHOUSE } from "../support/servers/clickhouse.ts";
import { askClickHouse, clickHouseForTests, soon, tell } from "./clickhouse-facts.ts";

const textOf = (file: string) => readFileSync(join(import.meta.dirname, "..", "..", file), "utf8");
const page = textOf("docs/analytics.md");
/** By the words before each. */
const QUESTIONS = new Map(
  [...page.matchAll(/^\*\*([^*]+?)\.?\*\*(?:(?!^\*\*)[\s\S])*?^```sql\n([\s\S]*?)^```$/gm)].map(
    ([, title = "", sql = ""]) => [title, sql],
  ),
);
const DATABASE = `analytics_${process.pid}`;

const makeId = createIds();
const DAY_MS = 86_400_000;
const yesterday = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
const instant = (time: string) => new Date(`${yesterday}T${time}Z`);

type Step = [type: FactType, time: string, detail?: Partial<FactDetail>];

/** What happened to one notification, from its acceptance on. */
function story(channel: FactDetail["channel"], steps: Step[], tenant = "acme"): Told[] {
  const id = makeId();
  const acceptedAt = instant(steps[0]?.[1] ?? "00:00:00");
  return steps.map(([type, time, detail = {}], number) =>
    tell({ tenant, id, type, number, at: instant(time), channel, priority: "normal", acceptedAt, ...detail }),
  );
}

const accepted = { event: "accepted", to: "queued" } as const;
const scheduled = { event: "accepted", to: "pending" } as const;
const attempt = { event: "attempt", from: "processing" } as const;
const good = { ...attempt, to: "sent", outcome: "accepted", attempt: 1 } as const;
const ses = { provider: "ses", cost: 0.25, latencyMs: 40 };
const blocked = { outcome: "rejected", detail: { code: "550 5.1.1", category: "recipient" } };
const away = { outcome: "unavailable", detail: { code: "503", category: "outage" } };

const FACTS: Told[] = [
  // Of four e-mails of the ninth hour three arrive, one of them for another tenant, and one was read.
  ...story("email", [
    ["accepted", "09:00:00.000", accepted],
    ["sent", "09:00:00.100", { ...good, ...ses }],
    ["delivered", "09:01:00.000", { event: "reported", from: "sent", to: "delivered" }],
    ["read", "09:02:00.000"],
  ]),
  ...story("email", [
    ["accepted", "09:59:59.500", accepted],
    ["retrying", "09:59:59.900", { ...attempt, to: "pending", attempt: 1, provider: "ses", latencyMs: 60, ...away }],
    ["sent", "10:00:00.000", { ...good, ...ses, attempt: 2 }],
  ]),
  ...story(
    "email",
    [
      ["accepted", "09:30:00.000", accepted],
      ["sent", "09:30:00.300", { ...good, ...ses }],
    ],
    "other",
  ),
  ...story("email", [
    ["accepted", "09:10:00.000", accepted],
    ["failed", "09:10:01.000", { ...attempt, to: "failed", attempt: 1, provider: "ses", latencyMs: 80, ...blocked }],
  ]),
  // One of the tenth hour bounces after it was sent, and one is cancelled.
  ...story("email", [
    ["accepted", "10:00:00.000", accepted],
    ["sent", "10:00:00.200", { ...good, ...ses, provider: "smtp" }],
    ["failed", "10:05:00.000", { event: "reported", from: "sent", to: "failed", provider: "smtp", ...blocked }],
  ]),
  ...story("email", [
    ["accepted", "10:10:00.000", accepted],
    ["cancelled", "10:11:00.000", { event: "cancelled", from: "queued", to: "cancelled" }],
  ]),
  // A text message that waited for its time.
  ...story("sms", [
    ["accepted", "09:00:00.000", scheduled],
    ["sent", "11:00:00.000", { ...good, provider: "twilio", cost: 0.5, latencyMs: 100 }],
  ]),
  ...story("sms", [
    ["accepted", "11:00:00.000", accepted],
    ["sent", "11:00:02.000", { ...good, provider: "twilio", cost: 0.5, latencyMs: 300 }],
  ]),
];

const ANSWERS: { [title: string]: { [name: string]: unknown }[] } = {
  "Delivery rate by channel and hour": [
    { hour: "09", channel: "email", notifications: 4, arrived: 3, lost: 1, rate: 0.75 },
    { hour: "09", channel: "sms", notifications: 1, arrived: 1, lost: 0, rate: 1 },
    { hour: "10", channel: "email", notifications: 2, arrived: 0, lost: 1, rate: 0 },
    { hour: "11", channel: "sms", notifications: 1, arrived: 1, lost: 0, rate: 1 },
  ],
  "How long it takes": [
    { channel: "email", sent: 4, p50: 300, p95: 500, p99: 500 },
    { channel: "sms", sent: 1, p50: 2000, p95: 2000, p99: 2000 },
  ],
  "Cost by provider and day": [
    { day: yesterday, provider: "ses", messages: 3, dollars: 0.75 },
    { day: yesterday, provider: "smtp", messages: 1, dollars: 0.25 },
    { day: yesterday, provider: "twilio", messages: 2, dollars: 1 },
  ],
  "Top failures": [
    {
      channel: "email",
      provider: "ses",
      outcome: "unavailable",
      category: "outage",
      code: "503",
      attempts: 1,
      notifications: 1,
    },
    {
      channel: "email",
      provider: "ses",
      outcome: "rejected",
      category: "recipient",
      code: "550 5.1.1",
      attempts: 1,
      notifications: 1,
    },
    {
      channel: "email",
      provider: "smtp",
      outcome: "rejected",
      category: "recipient",
      code: "550 5.1.1",
      attempts: 1,
      notifications: 1,
    },
  ],
  Retries: [
    { channel: "email", sent: 4, retries: 1, wasted: 0.2, most_attempts: 2 },
    { channel: "sms", sent: 2, retries: 0, wasted: 0, most_attempts: 1 },
  ],
  "How fast providers answer": [
    { hour: "09", provider: "ses", attempts: 4, p50: 60, p99: 80 },
    { hour: "10", provider: "ses", attempts: 1, p50: 40, p99: 40 },
    { hour: "10", provider: "smtp", attempts: 1, p50: 40, p99: 40 },
    { hour: "11", provider: "twilio", attempts: 2, p50: 300, p99: 300 },
  ],
};

const server = await clickHouseForTests();
const url = server?.url ?? "";

describe("the questions of the documentation", { skip: server === undefined && NO_CLICKHOUSE }, () => {
  before(async () => {
    const sink = await openClickHouse({ type: "clickhouse", url, database: DATABASE }, "analytics");
    // Twice, as after an answer that was lost: the view tells no fact twice.
    for (let times = 0; times < 2; times++) assert.deepEqual(await sink.deliver(FACTS, soon()), []);
    await sink.close();
  });
  after(() => server?.stop());

  test("are those of which the answers are known", () => {
    assert.deepEqual([...QUESTIONS.keys()], Object.keys(ANSWERS));
  });

  for (const [title, sql] of QUESTIONS)
    test(title, async () => {
      const rows = await askClickHouse(url, sql.replaceAll("carillon.facts", `${DATABASE}.facts`));
      const shown = rows.map(({ hour, ...row }) => (hour === undefined ? row : { hour: hourOf(hour), ...row }));
      assert.deepEqual(shown, ANSWERS[title]);
    });
});

/** Old servers show hours as instants of a second, new ones with a fraction. */
function hourOf(shown: unknown): string {
  const [, day, hour = ""] = /^(\S+) (\d\d):00:00/.exec(String(shown)) ?? [];
  assert.equal(day, yesterday);
  return hour;
}

test("the page lists the settings that there are", () => {
  const [, table = ""] = /^\| setting .*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = ""]) => names.match(/\w+/g) ?? []);
  assert.deepEqual(["type", ...listed].sort(), Object.keys(SINKS.clickhouse.properties).sort());
});

test("the example of the page and the compose file can be read", async () => {
  const [, example = ""] = /^```json\n([\s\S]*?)^```$/m.exec(page) ?? [];
  type Compose = { services: { carillon: { environment: { CARILLON_SINKS: string } } } };
  const compose = load(textOf("compose.clickhouse.yaml")) as Compose;
  const given = [JSON.stringify(JSON.parse(example).sinks), compose.services.carillon.environment.CARILLON_SINKS];
  for (const sinks of given) {
    const env = { CARILLON_SINKS: sinks, CLICKHOUSE_PASSWORD: "hunter2" };
    const config = await readConfig({ env, cwd: import.meta.dirname });
    assert.deepEqual(config.sinks.analytics, {
      type: "clickhouse",
      url: "http://clickhouse:8123",
      user: "carillon",
      password: "hunter2",
      days: 400,
    });
  }
});
