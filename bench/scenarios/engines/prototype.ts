// What PostgreSQL is spared when ready work waits elsewhere: one connection accepts, claims and settles, all processes of PostgreSQL are counted, vacuum too.

import { Redis } from "ioredis";
import pg from "pg";
import type { Ended } from "../../../src/domain/attempt.ts";
import { createIds } from "../../../src/domain/ids.ts";
import { createPostgresQueue } from "../../../src/queue/postgres/engine.ts";
import { settle } from "../../../src/queue/postgres/settle.ts";
import type { Queryable } from "../../../src/store/connection/database.ts";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { clearCarillon } from "../../adapters/carillon.ts";
import { secondsOf } from "../../cpu.ts";
import { notification } from "../../payload.ts";
import type { Case, Figures, Part, World } from "../../scenario.ts";
import { runSql, settleStore } from "../../sql.ts";
import { CLAIM_ROWS, claimChecked, claimGiven, DROP, marks, SCHEMA, TAKE } from "./handoff.sql.ts";

/** Fewer where each is a commit. */
export const rowsOf = (perCommit: number): number => (perCommit === 1 ? 10_000 : 50_000);
const CLAIM = 1000;
export const RANK = 2;
export const TENANT = 1;

type Entry = { seq: number; id: string; handoff: number; place: number; size: number; request: string };
type Way = { subject: string; settings: string; run: (bench: Bench, perCommit: number) => Promise<void> };
type Bench = { client: pg.Client; redis: Redis | undefined; newId: () => string };

const WAYS: readonly Way[] = [
  { subject: "today", settings: "a row of ready each", run: today },
  { subject: "rows of many", settings: "no engine: a row for each commit, taken whole", run: rowsOfMany },
  {
    subject: "given",
    settings: "entries in Redis; taken at its word; the bit is set when it is settled",
    run: beside({ isChecked: false, carries: false }),
  },
  {
    subject: "checked",
    settings: "entries in Redis; the claim looks at the bit and sets it",
    run: beside({ isChecked: true, carries: false }),
  },
  {
    subject: "given, carried",
    settings: "as given; entries have the request in them",
    run: beside({ isChecked: false, carries: true }),
  },
  {
    subject: "checked, carried",
    settings: "as checked; entries have the request in them",
    run: beside({ isChecked: true, carries: true }),
  },
];

async function today({ client, newId }: Bench, perCommit: number): Promise<void> {
  const queue = createPostgresQueue(client as Queryable, () => performance.now());
  for (let at = 0; at < rowsOf(perCommit); at += perCommit)
    await client.query({
      name: "accept",
      text: "select * from carillon.accept($1, false)",
      values: [rowsFrom(at, perCommit, newId).json],
    });
  for (;;) {
    const attempts = await queue.claim(1, CLAIM, 30_000);
    if (attempts.length === 0) return;
    await queue.settle(attempts.map((attempt) => sent(attempt)));
  }
}

async function rowsOfMany(bench: Bench, perCommit: number): Promise<void> {
  const entries = await accept(bench, perCommit);
  const byId = new Map(entries.map((entry) => [entry.seq, entry]));
  for (let left = rowsOf(perCommit); left > 0; ) {
    const { rows } = await bench.client.query<Claimed>({ name: "rows", text: CLAIM_ROWS, values: [CLAIM / perCommit] });
    const taken = rows.flatMap(({ seqs }) => seqs).map((seq) => byId.get(seq) as Entry);
    if (taken.length === 0) throw new Error("nothing was claimed");
    left -= taken.length;
    await settle(bench.client as Queryable, endings(rows[0]?.token as number, taken));
  }
}

function beside({ isChecked, carries }: { isChecked: boolean; carries: boolean }): Way["run"] {
  return async (bench, perCommit) => {
    const { redis, client } = bench;
    if (!redis) throw new Error("no Redis");
    await accept(bench, perCommit, (entries) =>
      redis.rpush(
        "{lane}ready",
        ...entries.map(({ request, ...entry }) => JSON.stringify(carries ? { ...entry, request } : entry)),
      ),
    );
    const text = isChecked ? claimChecked(!carries) : claimGiven(!carries);
    for (let n = 0; ; n++) {
      const own = `{lane}taken:${n}`;
      const given = (await redis.eval(
        TAKE,
        3,
        "{lane}ready",
        own,
        "{lane}deadlines",
        CLAIM,
        Date.now() + 5_000,
      )) as string[];
      const taken = given.map((entry) => JSON.parse(entry) as Entry);
      if (taken.length === 0) return;
      const masks = masksOf(taken);
      const values = [
        taken.map(({ seq }) => seq),
        taken.map(() => RANK),
        taken.map(() => TENANT),
        taken.map(({ id }) => id),
        taken.map(() => 1),
        taken.map(() => null),
        ...(isChecked ? [...masks, taken.map(({ handoff }) => handoff), taken.map(({ place }) => place)] : []),
      ];
      const { rows } = await client.query<Claimed>({ name: `claim-${isChecked}-${carries}`, text, values });
      await redis.eval(DROP, 2, own, "{lane}deadlines");
      const db = isChecked ? (client as Queryable) : markingToo(client, masks);
      const held = await settle(db, endings(rows[0]?.token as number, taken));
      if (held.includes(false)) throw new Error("a lease was lost");
    }
  };
}

type Claimed = { token: number; seqs: number[] };

/** Commits all of them, so many at a time. */
async function accept(
  { client, newId }: Bench,
  perCommit: number,
  push?: (entries: Entry[]) => Promise<unknown>,
): Promise<Entry[]> {
  const all: Entry[] = [];
  for (let at = 0; at < rowsOf(perCommit); at += perCommit) {
    const { json, ids, requests } = rowsFrom(at, perCommit, newId);
    const { rows } = await client.query<{ handed: [[number, number[]]] }>({
      name: "accept",
      text: "select handed from proto.accept($1)",
      values: [json],
    });
    const [[handoff, seqs]] = (rows[0] as { handed: [[number, number[]]] }).handed;
    const entries = seqs.map((seq, place) => ({
      seq,
      id: ids[place] as string,
      handoff,
      place,
      size: seqs.length,
      request: requests[place] as string,
    }));
    await push?.(entries);
    all.push(...entries);
  }
  return all;
}

export function rowsFrom(at: number, count: number, newId: () => string) {
  const ids = Array.from({ length: count }, newId);
  const requests = ids.map((_, n) => JSON.stringify(notification(at + n)));
  const rows = ids.map((i, n) => `{"i":"${i}","t":${TENANT},"c":"email","p":${RANK},"r":${requests[n]}}`);
  return { ids, requests, rows, json: `[${rows.join(",")}]` };
}

function masksOf(taken: readonly Entry[]): [number[], string[]] {
  const masks = new Map<number, string[]>();
  for (const { handoff, place, size } of taken) {
    const mask = masks.get(handoff) ?? Array<string>(size).fill("0");
    mask[place] = "1";
    masks.set(handoff, mask);
  }
  return [[...masks.keys()], [...masks.values()].map((mask) => mask.join(""))];
}

export const sent = (attempt: Ended["attempt"]): Ended => ({
  attempt,
  settlement: { to: "sent" },
  line: { outcome: "accepted", provider: "noop", latencyMs: 0.1 },
});

const endings = (token: number, taken: readonly Entry[]): Ended[] =>
  taken.map(({ id }, place) =>
    sent({
      id,
      tenant: TENANT,
      number: 1,
      lease: { handle: { token, size: taken.length } },
      handle: place,
    } as Ended["attempt"]),
  );

/** The statement of the product, which sets the bits of handoffs besides. */
const markingToo = (client: pg.Client, [numbers, masks]: [number[], string[]]): Queryable =>
  ({
    query: ({ text, values }: { text: string; values: unknown[] }) =>
      client.query({
        name: "settle-and-mark",
        text: text.replace("with c as", `with ${marks("$26", "$27")}, c as`),
        values: [...values, numbers, masks],
      }),
  }) as unknown as Queryable;

async function measure(world: World, { run }: Way, perCommit: number): Promise<Figures> {
  const count = rowsOf(perCommit);
  const client = new pg.Client({ connectionString: world.databaseUrl });
  await client.connect();
  const redis = world.redisUrl ? new Redis(world.redisUrl, { maxRetriesPerRequest: null }) : undefined;
  try {
    await redis?.flushall();
    const before = await spent(world);
    await run({ client, redis, newId: createIds() }, perCommit);
    await client.query("vacuum carillon.ready");
    await client.query("vacuum carillon.claims");
    await client.query("vacuum proto.handoffs");
    const after = await spent(world);
    const { rows } = await client.query("select count(*)::int as ended from carillon.events where type = 'attempt'");
    if (rows[0].ended !== count) throw new Error(`${rows[0].ended} of ${count} were settled`);
    const of = (name: keyof typeof before) => ((after[name] - before[name]) * 1e6) / count;
    return {
      postgresMicroseconds: of("postgres"),
      logBytes: (after.log - before.log) / count,
      redisMicroseconds: of("redis"),
      nodeMicroseconds: of("node"),
    };
  } finally {
    redis?.disconnect();
    await client.end();
  }
}

export async function spent({ databaseUrl, servers }: World) {
  const [row] = await runSql<{ bytes: string }>(
    databaseUrl,
    "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes",
  );
  const { postgres, redis } = servers;
  return {
    log: Number(row?.bytes),
    postgres: secondsOf(postgres === undefined ? [] : [postgres]),
    redis: secondsOf(redis === undefined ? [] : [redis]),
    node: secondsOfOurs(),
  };
}

/** Without those of the processes that it started. */
function secondsOfOurs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const caseOf = (world: World, way: Way, perCommit: number): Case => ({
  variant: `commits of ${perCommit.toLocaleString("en")}`,
  subject: way.subject,
  settings: way.settings,
  async prepare() {
    await clearCarillon(world.databaseUrl);
    await migrate(world.databaseUrl);
    await runSql(world.databaseUrl, SCHEMA);
    await settleStore(world.databaseUrl);
    return {
      measure: () => measure(world, way, perCommit),
      async finish() {
        await clearCarillon(world.databaseUrl);
        await runSql(world.databaseUrl, "drop schema proto cascade");
      },
    };
  },
});

export const prototype: Part = {
  title: `What PostgreSQL spends on a notification, accepted, claimed and settled, where what is ready waits elsewhere`,
  figure: { name: "postgresMicroseconds", unit: " µs" },
  targets: [],
  cases: (world) =>
    [1_000, 50, 1].flatMap((perCommit) =>
      WAYS.filter(({ run }) => world.redisUrl || run === today || run === rowsOfMany).map((way) =>
        caseOf(world, way, perCommit),
      ),
    ),
};
