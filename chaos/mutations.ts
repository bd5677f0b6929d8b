// Deliberately broken versions of the product, to show that the checker would notice.
//
// Each is a replacement in the text of one file, made as a process loads it; one in a migration is made in the database before any process
// starts. A text that is not found exactly once fails the run: a mutant that is none would pass for a checker that is blind.

import type { EngineName } from "#domain/handoff.ts";

/** `engine`: where ready work must wait for it to matter. */
export type Mutation = { file: string; from: RegExp; to: string; expected: string; engine?: EngineName };

/** What a mutated process says of itself. */
export const MUTATED = "mutated ";

export const isInDatabase = ({ file }: Mutation): boolean => file.startsWith("migrations/");

export function mutate({ file, from, to }: Mutation, text: string): string {
  if ([...text.matchAll(new RegExp(from, "g"))].length !== 1)
    throw new Error(`the mutant finds its text not once in ${file}`);
  return text.replace(from, to);
}

/** The function of that migration that is changed, to be put in the place of what is there. */
export function mutateRoutine(mutation: Mutation, migration: string): string {
  const mutated = mutate(mutation, migration);
  const [routine] = mutated.split(/^(?=create )/m).filter((part) => !migration.includes(part));
  return (routine ?? "").replace(/^create (?:or replace )?function/, "create or replace function");
}

const CLAIM = "src/queue/postgres/claim.ts";
const CLAIM_STATEMENT = "src/queue/postgres/claim-statement.ts";
const SETTLE = "src/queue/postgres/settle.ts";
const LEASES = "src/queue/postgres/leases.ts";
const IN_HAND = "src/roles/turns.ts";
const DELIVER = "src/steps/walk/deliver.ts";
const FEED = "src/record/feed.ts";
const CALLS = "src/steps/calls/make-callbacks.ts";
const STORED =
  /const \{ made, next \} = await make\(tx, facts, page\.next, world\);\s+await moveFollower\(tx, FOLLOWER, next\);/;
const MAKE = "const { made, next } = await make(tx, facts, page.next, world);";
/** What comes after it is another transaction. */
const APART = 'await tx.query("commit"); await tx.query("begin");';

const COUNTS = "src/steps/planned/fold-tallies.ts";
const COUNTED = /if \(comparePositions\(next, after\) !== 0\) await moveFollower\(tx, TALLIES, next\);/;

export const MUTATIONS = {
  // Settling finds a claim by its token: without a new one, the sweep would not shut the old holder out.
  "no-new-token": {
    file: LEASES,
    from: /token = nextval\('carillon\.lease_token'\),/,
    to: "token = claims.token,",
    expected: "G3",
  },
  "no-lease-margin": {
    file: "src/domain/attempt.ts",
    from: /if \(now >= lease\.endsAt - marginMs\) return \{ kind: "released" \};/,
    to: "",
    expected: "G7",
  },
  "ack-before-send": {
    file: DELIVER,
    from: /export function deliver(\(.*\): Promise<void> \{)\s+const (\w+) = guard\(prepared, slot\.startedAt, world\) \?\?/,
    to: `export async function deliver$1
  const refused = guard(prepared, slot.startedAt, world);
  if (!refused) await settle(end(prepared, { outcome: { kind: "accepted" } }, 0, world), world.settlements);
  const $2 = refused ??`,
    expected: "G6",
  },
  // A claim that is settled in parts forgets the first when the second comes.
  "marks-forgotten": {
    file: SETTLE,
    from: /c\.done \| m\.mask as after/,
    to: "m.mask as after",
    expected: "G4",
  },
  "sweep-too-early": {
    file: LEASES,
    from: /lease_until <= clock_timestamp\(\) order by/,
    to: "lease_until <= clock_timestamp() + interval '1200 ms' order by",
    expected: "G3",
  },
  "low-before-urgent": {
    file: CLAIM,
    from: /const turns = ranks\.map\(\(rank\) => rounds\.next\(rank\)\);/,
    to: "ranks = [...ranks].reverse(); const turns = ranks.map((rank) => rounds.next(rank));",
    expected: "G8",
  },
  "last-in-first-out": {
    file: CLAIM_STATEMENT,
    from: /and seq <= t\.last_seq\s+order by seq limit t\.takes/,
    to: "order by seq desc limit t.takes",
    expected: "G9",
  },
  // The first flow fills the claim.
  "turns-ignored-at-claim": {
    file: CLAIM_STATEMENT,
    from: /select \* from carillon\.queue_plan\(([^)]*)\)/,
    to: `select lane, is_due, tenant, pool, head, last_due, 9223372036854775807 as last_seq, $$2::integer as takes, seen, weight, is_over
      from carillon.queue_plan($1) limit 1`,
    expected: "G19",
  },
  "no-backoff": {
    file: "src/domain/retry.ts",
    from: /const waitMs = Math\.max\(/,
    to: "const waitMs = Math.min(50, ",
    expected: "G14",
  },
  "resend-what-is-held": {
    file: "src/domain/retry.ts",
    from: /isResent\(attempt\) \? resend\(/,
    to: "true ? resend(",
    expected: "G6",
  },
  "lanes-ignored-in-hand": {
    file: IN_HAND,
    from: /return this\.#lanes\[rank\] as Lane<One>;/,
    to: "return this.#lanes[0 * rank] as Lane<One>;",
    expected: "G18",
  },
  // Whoever comes joins the line that is there, whosever it is.
  "turns-ignored-in-hand": {
    file: IN_HAND,
    from: /if \(line\) line\.ones\.push\(one\);/,
    to: "const [any] = [...going.values(), ...aside.values()]; if (any) any.ones.push(one);",
    expected: "G19",
  },
  "one-gate-for-all-receivers": {
    file: "src/guards/gate-book.ts",
    from: /receivers\.use\(way\.tenant, way\.account, /,
    to: "receivers.use(0, '', ",
    expected: "G20",
  },
  // Whoever follows takes what is there, whatever may still be committed before it.
  "no-horizon": {
    file: FEED,
    from: /pg_snapshot_xmin\(pg_current_snapshot\(\)\)::text::bigint as horizon/,
    to: "9223372036854775806 as horizon",
    expected: "G21",
  },
  "sweeps-untold": {
    file: "migrations/0031_feed.sql",
    from: /from written w where w\.tenant > 0;/,
    to: "from written w where w.tenant > 0 and w.outcome is distinct from 'lost';",
    expected: "G21",
  },
  // How far it has come is kept before what it has read was made: what a crash takes in between is never made.
  "cursor-before-callbacks": {
    file: CALLS,
    from: STORED,
    to: `await moveFollower(tx, FOLLOWER, page.next); ${APART} ${MAKE}`,
    expected: "G22",
  },
  "cursor-after-callbacks": {
    file: CALLS,
    from: STORED,
    to: `${MAKE} ${APART} await moveFollower(tx, FOLLOWER, next);`,
    expected: "G22",
  },
  // What was counted is kept before how far that was: whoever is killed in between has it counted twice.
  "cursor-after-tallies": {
    file: COUNTS,
    from: COUNTED,
    to: `${APART} await tx.query("select pg_sleep(0.2)"); $&`,
    expected: "G25",
  },
  "signed-without-timestamp": {
    file: "src/wire/standard-webhooks.ts",
    from: /`\$\{id\}\.\$\{seconds\}\.\$\{body\}`/,
    to: "`$${id}.$${body}`",
    expected: "G22",
  },
  "an-id-for-each-try": {
    file: "src/channels/callback/callback.ts",
    from: /signWebhook\(\{ id, at, body \}/,
    to: "signWebhook({ id: id + message.attempt, at, body }",
    expected: "G22",
  },
  "lines-ignored": {
    file: "src/domain/calls.ts",
    from: /if \(fifo === null\) return undefined;/,
    to: "if (fifo !== undefined) return undefined;",
    expected: "G22",
  },
  // What an engine gives is claimed, whether or not it has been: an old snapshot of Redis, or a message that comes twice, sends again.
  "entries-trusted": {
    file: CLAIM_STATEMENT,
    from: /\(~h\.done\) & substring\(/,
    to: "substring(",
    expected: "G4",
    engine: "redis",
  },
  "entries-trusted-on-sqs": {
    file: CLAIM_STATEMENT,
    from: /\(~h\.done\) & substring\(/,
    to: "substring(",
    expected: "G4",
    engine: "sqs",
  },
  // What was taken stays open in its handoff.
  "bits-not-set": {
    file: CLAIM_STATEMENT,
    from: /bit_or\(done\) \| \(bit_or\(wanted\) & coalesce\(~bit_or\(kept\), bit_or\(wanted\)\)\) as after/,
    to: "bit_or(done) as after",
    expected: "G4",
    engine: "redis",
  },
  // Nobody offers what was handed over by one who died before he offered it, or what Redis has forgotten.
  "nothing-offered-again": {
    file: "src/queue/redis/tend.ts",
    from: /if \(missing\.length === 0\) return 0;/,
    to: "if (missing.length >= 0) return 0;",
    expected: "G17",
    engine: "redis",
  },
  // What a taker had who died stays his.
  "takes-not-restored": {
    file: "src/queue/redis/tend.ts",
    from: /while \(Number\(await run\(RESTORE, \[MOST_TAKES\]\)\) === MOST_TAKES\) yield 0;/,
    to: "",
    expected: "G17",
    engine: "redis",
  },
} as const satisfies { [name: string]: Mutation };

export type Mutant = keyof typeof MUTATIONS;
export const MUTANTS = Object.keys(MUTATIONS) as Mutant[];
