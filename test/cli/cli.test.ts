// The command line as an operator meets it: exit codes, what it says, and what it never says.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import pg from "pg";
import { freshDatabase } from "../support/postgres.ts";
import { type Exit, gone, isAlive, sandboxFor } from "../support/process.ts";
import { ADMIN_KEY, email, startService } from "../support/service.ts";

const EX_USAGE = 64;
const EX_CONFIG = 78;
const NOT_FOUND = 3;
const SECRET = "correct-horse-battery";
/** A person reads what is printed. */
const STACK = /^\s+at /m;

const settingsOf = ({ stdout }: Exit) => JSON.parse(stdout.slice(0, stdout.lastIndexOf("}") + 1));
const assertSilentAbout = (secret: string, { stdout, stderr }: Exit) =>
  assert.ok(!stdout.includes(secret) && !stderr.includes(secret), `${secret} is in\n${stdout}\n${stderr}`);

async function withClient<Value>(url: string, use: (client: pg.Client) => Promise<Value>): Promise<Value> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return use(client).finally(() => client.end());
}

describe("carillon admin-key", { concurrency: true }, () => {
  const keyIn = ({ stdout, stderr }: Exit) => {
    const found = /^admin key, shown only this once: (ck_\w+)$/m.exec(stdout)?.[1];
    assert.ok(found, stderr);
    return found;
  };

  test("makes an admin key in the database of a service that runs", async (t) => {
    const sandbox = await sandboxFor(t);
    const service = await startService();
    try {
      const made = await sandbox.run(["admin-key"], { DATABASE_URL: service.databaseUrl });
      const key = keyIn(made);
      assert.equal((await service.ask("GET", "/v1/keys", undefined, { key })).status, 200);
      const asked = ["audit", "--action", "key.create", "--count", "1"];
      const { stdout } = await sandbox.run(asked, { CARILLON_URL: service.url, CARILLON_API_KEY: key });
      const id = key.split("_")[1];
      assert.match(
        stdout,
        new RegExp(`^\\S+  command-line admin-key \\(.+\\)  key.create  key:${id}  {"after":{.*"admin"`),
      );
      assert.ok(!stdout.includes(key));
    } finally {
      await service.stop();
    }
  });

  test("makes one in an embedded database, whether its service runs or not", async (t) => {
    const sandbox = await sandboxFor(t);
    const service = await sandbox.start();
    const first = keyIn(await sandbox.run(["admin-key"]));
    assert.equal((await service.ask("GET", "/v1/keys", undefined, { key: first })).status, 200);
    await service.end("SIGTERM");
    const second = keyIn(await sandbox.run(["admin-key"]));
    const again = await sandbox.start();
    for (const key of [first, second]) {
      assert.equal((await again.ask("GET", "/v1/keys", undefined, { key })).status, 200);
    }
  });

  test("makes no database where there is none, and says where it looked", async (t) => {
    const sandbox = await sandboxFor(t);
    const { code, stderr } = await sandbox.run(["admin-key"]);
    assert.equal(code, 1);
    assert.match(stderr, /There is no database in .*\. Set CARILLON_HOME or DATABASE_URL/);
    assert.ok(!existsSync(sandbox.home));
    const empty = await freshDatabase();
    const found = await sandbox.run(["admin-key"], { DATABASE_URL: empty.url });
    await empty.drop();
    assert.match(found.stderr, /this database has never been used by Carillon/);
    assert.doesNotMatch(stderr + found.stderr, STACK);
  });
});

describe("carillon check", { concurrency: true }, () => {
  test("shows a valid configuration without its secrets and starts nothing", async (t) => {
    const sandbox = await sandboxFor(t);
    const env = { CARILLON_API_KEY: `${SECRET}-key`, CARILLON_ROLES: "api, keeper" };
    const found = await sandbox.run(["check"], env);
    assert.equal(found.code, 0, found.stderr);
    assert.match(found.stdout, /the configuration is valid, the database not started/);
    const { database, roles, home, apiKey } = settingsOf(found);
    assert.deepEqual([database, apiKey], ["embedded", "(set)"]);
    assert.deepEqual(roles, ["api", "keeper"]);
    assert.equal(home, sandbox.home);
    assertSilentAbout(SECRET, found);
    assert.ok(!existsSync(sandbox.home));
  });

  test("says whether the database answers", async (t) => {
    const [sandbox, database] = [await sandboxFor(t), await freshDatabase()];
    t.after(() => database.drop());
    const found = await sandbox.run(["check"], { DATABASE_URL: database.url });
    assert.equal(found.code, 0, found.stderr);
    assert.match(found.stdout, /the configuration is valid, the database answers/);
    const { rowCount } = await withClient(database.url, (client) =>
      client.query("select from pg_namespace where nspname = 'carillon'"),
    );
    assert.equal(rowCount, 0, "nothing was made");
  });

  test("names the line and column where a config file is not JSON, and the route that leads nowhere", async (t) => {
    const sandbox = await sandboxFor(t);
    const file = join(sandbox.directory, "carillon.config.json");
    await writeFile(file, '{\n  "port": 8001,\n  "roles": ["api",]\n}');
    const bad = await sandbox.run(["check"]);
    assert.equal(bad.code, EX_CONFIG);
    assert.match(bad.stderr, /carillon\.config\.json: not valid JSON at line 3, column 19$/m);
    await writeFile(file, '{ "routes": { "pigeon": "dev", "sms": ["dev", "nobody"], "email": [], "slack": 7 } }');
    const { stderr } = await sandbox.run(["check"]);
    for (const line of [
      /^ {2}routes\.pigeon: expected a channel, one of .*, found another$/m,
      /^ {2}routes\.sms: expected the name of a provider, found "nobody"$/m,
      /^ {2}routes\.email: expected the name of a provider, found none$/m,
      /^ {2}routes\.slack: expected the name of a provider, found 7$/m,
    ]) {
      assert.match(stderr, line);
    }
  });

  test("reports every fault at once with key, expectation and finding, but no secret", async (t) => {
    const sandbox = await sandboxFor(t);
    await writeFile(join(sandbox.directory, "carillon.config.json"), '{ "acceptCommits": 99, "colour": "blue" }');
    const found = await sandbox.run(["check"], {
      PORT: "eighty",
      DATABASE_URL: `mysql://root:${SECRET}@db/carillon`,
      CARILLON_API_KEY: `${SECRET} with spaces`,
      CARILLON_ROLES: "api,chef",
      CARILLON_DRAIN_MS: "-1",
      CARILLON_LOG_LEVEL: "loud",
      CARILLON_ACCEPT_MAX_WAITING: "0",
    });
    assert.equal(found.code, EX_CONFIG);
    assert.match(found.stderr, /the configuration has 9 faults/);
    for (const fault of [
      /^ {2}PORT: expected a port from 0 to 65535, found "eighty"$/m,
      /^ {2}DATABASE_URL: expected a URL like postgres:.*, found something else \(not shown\)$/m,
      /^ {2}CARILLON_API_KEY: expected at least 8 printable characters.*, found something else \(not shown\)$/m,
      /^ {2}CARILLON_ROLES: expected a list of api, .*, found "api,chef"$/m,
      /^ {2}CARILLON_DRAIN_MS: expected milliseconds .*, found "-1"$/m,
      /^ {2}CARILLON_LOG_LEVEL: expected one of .*, found "loud"$/m,
      /^ {2}CARILLON_ACCEPT_MAX_WAITING: expected a whole number .*, found "0"$/m,
      /^ {2}acceptCommits: expected a whole number from 1 to 16, found 99$/m,
      /^ {2}colour: expected a known setting, found an unknown one$/m,
    ]) {
      assert.match(found.stderr, fault);
    }
    assertSilentAbout(SECRET, found);
  });

  test("shows no password of the database's URL, in whatever form it is given", async (t) => {
    const sandbox = await sandboxFor(t);
    for (const url of [
      `postgres://carillon:${SECRET}@${SECRET}@db/carillon`,
      `postgres://carillon:${SECRET}/${SECRET}@db/carillon`,
      `postgres://carillon@db/carillon?password=${SECRET}`,
    ]) {
      assertSilentAbout(SECRET, await sandbox.run(["check"], { DATABASE_URL: url }));
    }
  });

  test("does not quote a config file that cannot be read", async (t) => {
    const sandbox = await sandboxFor(t);
    const secret = "hunter22";
    await writeFile(join(sandbox.directory, "carillon.config.json"), `{ "apiKey": ${secret} }`);
    const found = await sandbox.run(["check"]);
    assert.equal(found.code, EX_CONFIG);
    assert.match(found.stderr, /carillon\.config\.json: expected a file that can be read/);
    assertSilentAbout(secret, found);
  });

  const files = {
    "carillon.config.json": '{ "port": 8001, "logLevel": "error", "roles": ["api"] }',
    "carillon.config.js": 'export default { port: 8001, logLevel: "error", roles: ["api"] };',
    "carillon.config.ts": 'const port: number = 8001;\nexport default { port, logLevel: "error", roles: ["api"] };',
  };
  for (const [name, text] of Object.entries(files)) {
    test(`reads ${name}, and the environment wins`, async (t) => {
      const sandbox = await sandboxFor(t);
      await writeFile(join(sandbox.directory, name), text);
      const found = await sandbox.run(["check"], { PORT: undefined, CARILLON_LOG_LEVEL: "warn" });
      assert.equal(found.code, 0, found.stderr);
      const { port, logLevel, roles } = settingsOf(found);
      assert.deepEqual({ port, logLevel, roles }, { port: 8001, logLevel: "warn", roles: ["api"] });
    });
  }

  test("reads the file that CARILLON_CONFIG names, and reports one that is not there", async (t) => {
    const sandbox = await sandboxFor(t);
    await writeFile(join(sandbox.directory, "other.json"), '{ "drainMs": 7 }');
    const found = await sandbox.run(["check"], { CARILLON_CONFIG: "other.json" });
    assert.equal(settingsOf(found).drainMs, 7);

    const missing = await sandbox.run(["check"], { CARILLON_CONFIG: "missing.json" });
    assert.equal(missing.code, EX_CONFIG);
    assert.match(missing.stderr, /CARILLON_CONFIG: expected a file that can be read, found .*missing\.json/);
  });
});

describe("carillon", { concurrency: true }, () => {
  test("answers --help and --version, and refuses what it does not know with 64", async (t) => {
    const sandbox = await sandboxFor(t);
    const help = await sandbox.run(["--help"]);
    assert.equal(help.code, 0);
    for (const command of ["start", "check", "migrate"]) assert.match(help.stdout, new RegExp(`carillon ${command}`));
    const version = await sandbox.run(["--version"]);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);

    for (const args of [[], ["dance"], ["check", "twice"], ["constructor"], ["check", "--loudly"]]) {
      const { code, stderr } = await sandbox.run(args);
      assert.equal(code, EX_USAGE, `carillon ${args.join(" ")}`);
      assert.ok(stderr.includes(args.at(-1) ?? "carillon start"), stderr);
      assert.doesNotMatch(stderr, STACK);
    }
  });

  test("starts nothing when the configuration is not valid", async (t) => {
    const sandbox = await sandboxFor(t);
    const { code, stdout, stderr } = await sandbox.run(["start"], { PORT: "70000" });
    assert.equal(code, EX_CONFIG);
    assert.match(stderr, /PORT: expected a port from 0 to 65535, found "70000"/);
    assert.equal(stdout, "");
    assert.ok(!existsSync(sandbox.home));
  });

  test("warns of a variable that looks like a misspelt one of ours", async (t) => {
    const sandbox = await sandboxFor(t);
    const { code, stderr } = await sandbox.run(["check"], { CARILLON_API_KEYS: SECRET });
    assert.equal(code, 0);
    assert.match(stderr, /CARILLON_API_KEYS.*unknown environment variable/);
    assert.ok(!stderr.includes(SECRET));
  });

  test("warns of a setting's former name, which still counts", async (t) => {
    const sandbox = await sandboxFor(t);
    const { code, stdout, stderr } = await sandbox.run(["check"], { CARILLON_ACCEPT_LANES: "7" });
    assert.equal(code, 0);
    assert.match(stdout, /"acceptCommits": 7/);
    assert.match(stderr, /CARILLON_ACCEPT_LANES.*CARILLON_ACCEPT_COMMITS.*another name now/);
  });

  test("migrates a database once", async (t) => {
    const sandbox = await sandboxFor(t);
    const database = await freshDatabase();
    t.after(() => database.drop());
    const first = await sandbox.run(["migrate"], { DATABASE_URL: database.url });
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /^applied (schema of \d+|0001_foundation)/);
    const second = await sandbox.run(["migrate"], { DATABASE_URL: database.url });
    assert.deepEqual([second.code, second.stdout], [0, "the schema is up to date\n"]);
  });

  test("refuses a database with a newer schema than it knows", async (t) => {
    const sandbox = await sandboxFor(t);
    const database = await freshDatabase();
    t.after(() => database.drop());
    await sandbox.run(["migrate"], { DATABASE_URL: database.url });
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query("insert into carillon.migrations (version, name) values (9999, 'from_the_future')");
    await client.end();

    for (const command of ["start", "migrate"]) {
      const { code, stdout, stderr } = await sandbox.run([command], { DATABASE_URL: database.url });
      assert.equal(code, 1);
      assert.match(stderr, /schema version 9999, this Carillon knows versions up to \d+/);
      assert.doesNotMatch(stderr, STACK);
      assert.equal(stdout, "");
    }
  });
});

describe("a database that refuses us is named in one sentence, and nothing is made", { concurrency: true }, () => {
  const refusals: { [title: string]: { of: (url: string) => string; says: RegExp } } = {
    "a wrong password": {
      of: (url) => url.replace(/:[^:@]*@/, `:${SECRET}@`),
      says: /password authentication failed for user "carillon"\. Check the password in DATABASE_URL/,
    },
    "a user that is not there": {
      of: (url) => url.replace(/\/\/[^:]*:/, "//nobody-here:"),
      says: /password authentication failed for user "nobody-here"|role "nobody-here" does not exist/,
    },
    "a database that is not there": {
      of: (url) => url.replace(/\/test_\w+/, "/not_there"),
      says: /database "not_there" does not exist\. Create it/,
    },
    "a host that is not there": {
      of: () => `postgres://carillon:${SECRET}@no-such-host.invalid/carillon`,
      says: /the database's host is not known: .*no-such-host\.invalid\. Correct DATABASE_URL/,
    },
  };
  for (const [title, { of, says }] of Object.entries(refusals)) {
    test(title, async (t) => {
      const [sandbox, database] = [await sandboxFor(t), await freshDatabase()];
      t.after(() => database.drop());
      for (const command of ["check", "start", "migrate", "admin-key"]) {
        const found = await sandbox.run([command], { DATABASE_URL: of(database.url) });
        assert.equal(found.code, 1, command);
        assert.match(found.stderr, says);
        assert.doesNotMatch(found.stderr, STACK);
        assert.doesNotMatch(found.stderr, /waiting for the database/);
        assert.doesNotMatch(found.stdout, /is valid|admin key/);
        assertSilentAbout(SECRET, found);
      }
    });
  }

  test("the commands that ask a running Carillon say where none answers", async (t) => {
    const sandbox = await sandboxFor(t);
    const env = { CARILLON_API_KEY: "some-key-1" };
    const gone = await sandbox.run(["provider", "ls"], { ...env, CARILLON_URL: "http://127.0.0.1:1" });
    assert.deepEqual([gone.code, gone.stderr.includes("no Carillon answers at http://127.0.0.1:1")], [1, true]);
    const nonsense = await sandbox.run(["schedule", "ls"], { ...env, CARILLON_URL: "nonsense" });
    assert.deepEqual([nonsense.code, nonsense.stderr.includes("CARILLON_URL must be")], [78, true]);
    for (const { stderr } of [gone, nonsense]) assert.doesNotMatch(stderr, STACK);
  });

  test("check does not wait for one that does not answer", async (t) => {
    const sandbox = await sandboxFor(t);
    const found = await sandbox.run(["check"], { DATABASE_URL: `postgres://carillon:${SECRET}@127.0.0.1:1/carillon` });
    assert.equal(found.code, 1);
    assert.match(found.stderr, /^carillon: the database does not answer: connect ECONNREFUSED 127\.0\.0\.1:1$/m);
    assertSilentAbout(SECRET, found);
  });
});

describe("carillon start without a database that answers", () => {
  test("waits for it, and can be stopped meanwhile", async (t) => {
    const sandbox = await sandboxFor(t);
    const waiting = sandbox.launch({ DATABASE_URL: `postgres://carillon:${SECRET}@127.0.0.1:1/carillon` });
    await waiting.says(/waiting for the database/);
    const exit = await waiting.end("SIGTERM");
    // Had it waited to the end, it would have failed.
    assert.equal(exit.code, 0, exit.stderr);
    assertSilentAbout(SECRET, exit);
  });
});

describe("carillon start with its own PostgreSQL", { concurrency: true }, () => {
  test("prints one admin key at the first start and none later, and leaves nothing running", async (t) => {
    const sandbox = await sandboxFor(t);
    const first = await sandbox.start({ CARILLON_API_KEY: undefined });
    const keys = first.stdout().match(/ck_\w+/g) ?? [];
    assert.equal(keys.length, 1, first.stdout());
    const key = keys[0] ?? "";
    assert.equal((await first.ask("POST", "/v1/notifications", email(), { key })).status, 202);
    assert.equal((await first.ask("GET", "/v1/keys", undefined, { key })).body.data.length, 1);

    const { pid } = sandbox.server();
    const { code, stderr } = await first.end("SIGTERM");
    assert.equal(code, 0, stderr);
    assert.ok(!isAlive(pid), "PostgreSQL still runs");
    assert.ok(!stderr.includes(key));

    const second = await sandbox.start({ CARILLON_API_KEY: undefined });
    assert.doesNotMatch(second.stdout() + second.stderr(), /ck_|admin key/);
    const { body } = await second.ask("GET", "/v1/notifications", undefined, { key });
    assert.equal(body.data.length, 1);
    assert.equal((await second.end("SIGINT")).code, 0);
  });

  test("refuses a home that another Carillon uses, which goes on", async (t) => {
    const sandbox = await sandboxFor(t);
    const first = await sandbox.start();
    const { code, stdout, stderr } = await sandbox.run(["start"]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`in use by another Carillon \\(process ${first.pid}\\).*CARILLON_HOME`));
    assert.doesNotMatch(stderr, STACK);
    assert.equal(stdout, "");
    assert.equal((await first.ask("POST", "/v1/notifications", email())).status, 202);
  });

  test("says that its port is taken before anything is made", async (t) => {
    const sandbox = await sandboxFor(t);
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const { code, stdout, stderr } = await sandbox.run(["start"], { PORT: String(port), CARILLON_API_KEY: undefined });
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(`^carillon: .*${port}\\. Something else listens there: stop it, or set PORT\\.$`, "m"),
    );
    assert.doesNotMatch(stderr, STACK);
    assert.equal(stdout, "", "no key was shown that nobody will see again");
    assert.ok(!existsSync(sandbox.home));
  });

  test("can be stopped while it starts", async (t) => {
    const sandbox = await sandboxFor(t);
    const starting = sandbox.launch();
    await starting.says(/PostgreSQL started/);
    const { pid } = sandbox.server();
    assert.equal((await starting.end("SIGTERM")).code, 0);
    await gone(pid);
  });
});

describe("carillon schedule and reminder", () => {
  test("show and steer what a running Carillon keeps", async (t) => {
    const service = await startService();
    t.after(() => service.stop());
    const sandbox = await sandboxFor(t);
    const notification = { channel: "console", content: { body: "Hello" } };
    await service.ask("PUT", "/v1/schedules/weekly", { cron: "0 9 * * 1", notification });
    const at = "2099-01-01T20:00:00.000Z";
    await service.ask("PUT", "/v1/reminders/game", { at, before: ["P1D", "PT1H"], notification });
    const env = { CARILLON_URL: service.url, CARILLON_API_KEY: ADMIN_KEY };
    const run = (...args: string[]) => sandbox.run(args, env);

    assert.match((await run("schedule", "ls")).stdout, /^weekly +0 9 \* \* 1 +UTC +20\d\d-/);
    const next = await run("schedule", "next", "weekly", "--count", "3");
    assert.match(next.stdout, /^(20\d\d-\d\d-\d\dT09:00:00\.000Z\n){3}$/);
    assert.match((await run("schedule", "pause", "weekly")).stdout, /weekly is paused/);
    assert.match((await run("schedule", "ls")).stdout, /paused/);
    assert.match((await run("schedule", "resume", "weekly")).stdout, /weekly goes on, next at 20/);
    assert.match((await run("reminder", "ls")).stdout, /^game +2099-01-01T20:00:00\.000Z +P1D PT1H +\(reminder\)/);
    assert.match((await run("reminder", "show", "game")).stdout, /PT1H +2099-01-01T19:00:00\.000Z +planned/);

    assert.match((await run("provider", "ls")).stdout, /^dev +dev +email/m);
    assert.match((await run("provider", "test", "dev")).stdout, /^dev: healthy/);

    const why = ["--reason", "their outage"];
    assert.match((await run("pause", "channel", "sms", ...why)).stdout, /^channel sms is paused\n$/);
    const ends = await run("pause", "provider", "webhook", ...why, "--until", "2099-01-01T00:00:00Z");
    assert.equal(ends.stdout, "provider webhook is paused until 2099-01-01T00:00:00.000Z\n");
    assert.match(
      (await run("pauses")).stdout,
      /^channel sms +since 20.* their outage\nprovider webhook .* until 2099-.*\n$/,
    );
    assert.equal((await run("resume", "channel", "sms")).stdout, "channel sms goes on\n");
    assert.equal((await run("resume", "provider", "webhook")).stdout, "provider webhook goes on\n");
    assert.equal((await run("pauses")).stdout, "");
    assert.equal((await run("pause", "channel", "sms")).code, EX_USAGE, "without a reason");
    assert.match((await run("pause", "tenant", "nobody", ...why)).stderr, /NOT_FOUND: there is no tenant nobody/);
    assert.equal((await run("tenant", "weigh", "default", "--weight", "4")).stdout, "default has weight 4\n");
    assert.match((await run("tenant", "ls")).stdout, /^default +weight 4 +20/);
    assert.equal((await run("tenant", "weigh", "default")).code, EX_USAGE);

    const unknown = await run("schedule", "next", "nobody");
    assert.deepEqual([unknown.code, unknown.stderr], [NOT_FOUND, "carillon: NOT_FOUND: there is no schedule nobody\n"]);
    assert.equal((await run("schedule", "dance")).code, EX_USAGE);
    for (const count of ["many", "0", "1.5", "-1"]) {
      const { code, stdout, stderr } = await run("schedule", "next", "weekly", `--count=${count}`);
      assert.deepEqual([code, stdout], [EX_USAGE, ""]);
      assert.match(stderr, /^carillon: --count must be a whole number, not /);
    }
    assert.equal((await run("reminder", "show")).code, EX_USAGE);
    assert.equal(
      (await sandbox.run(["schedule", "ls"], { CARILLON_URL: service.url, CARILLON_API_KEY: undefined })).code,
      EX_CONFIG,
    );
    const nobody = await sandbox.run(["schedule", "ls"], { ...env, CARILLON_URL: "http://127.0.0.1:9" });
    assert.equal(nobody.code, 1);
    assert.doesNotMatch(nobody.stderr, STACK);
  });
});
