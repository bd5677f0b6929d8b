// carillon send, show, tail, dead and key, as somebody uses them who lives at the command line.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import type { Fact } from "#client/client.ts";
import { commandLine, toldBy } from "../support/command-line.ts";
import { type Exit, launch, sandboxFor } from "../support/process.ts";
import { email, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const [FAILED, NOT_FOUND, REFUSED, EX_USAGE] = [1, 3, 4, 64];
const UUID = /^[0-9a-f-]{36}/;

describe("at the command line", () => {
  let service: Service;
  let receiver: Awaited<ReturnType<typeof startStandIn>>;
  before(async () => {
    receiver = await startStandIn();
    service = await startService({ roles: ["api", "worker", "scheduler"], allowAddresses: ["127.0.0.1"] });
  });
  after(async () => {
    await service.stop();
    await receiver.close();
  });
  const run = (...args: string[]) => commandLine(service)(...args);
  const mail = ["--channel", "email", "--to", "ada@example.com", "--subject", "Hello", "--body", "Good morning"];

  test("a mail is sent from options, and waited for", async () => {
    const { code, stdout } = await run("send", ...mail, "--wait", "--priority", "high", "--json");
    assert.equal(code, 0);
    const { status, priority, content, recipient, attempts } = JSON.parse(stdout);
    assert.deepEqual([status, priority, attempts.length], ["sent", "high", 1]);
    assert.deepEqual(
      [content, recipient],
      [{ subject: "Hello", textBody: "Good morning" }, { email: "ada@example.com" }],
    );
    const later = await run("send", ...mail, "--at", "2099-01-01T00:00:00.000Z");
    assert.match(later.stdout, /^[0-9a-f-]{36} is pending for 2099-01-01T00:00:00\.000Z, normal\n$/);
    const [id = ""] = UUID.exec(later.stdout) ?? [];
    assert.match((await run("show", id)).stdout, /○ {2}waits until 2099-01-01T00:00:00\.000Z\n$/);
    await assert.rejects(
      run("send", ...mail, "--at", "2099-01-01T00:00:00Z", "--wait", "--timeout", "1"),
      /not ended in 1 s/,
    );
  });

  test("a request comes from a file or standard input, and options go over it", async (t) => {
    const sandbox = await sandboxFor(t);
    const file = join(sandbox.directory, "request.json");
    await writeFile(file, JSON.stringify({ ...email("one"), idempotencyKey: "from a file" }));
    const sent = JSON.parse((await run("send", "--file", file, "--json")).stdout);
    const again = JSON.parse((await run("send", "--file", file, "--json")).stdout);
    assert.equal(again.notificationId, sent.notificationId);
    const typed = commandLine(service, { input: JSON.stringify(email("two")) });
    const { stdout } = await typed("send", "--file", "-", "--subject", "Other", "--user", "ada", "--wait", "--json");
    const { content, recipient } = JSON.parse(stdout);
    assert.deepEqual([content.subject, content.textBody, recipient.userId], ["Other", "Hello", "ada"]);
    const faults: [args: string[], says: RegExp][] = [
      [["--file", join(sandbox.directory, "none.json")], /none\.json cannot be read/],
      [["--to", "ada@example.com"], /say which: --channel/],
      [["--channel", "console", "--to", "x"], /console has no address/],
      [["--channel", "email", "--variables", "{"], /--variables is not JSON/],
    ];
    for (const [args, says] of faults) await assert.rejects(run("send", ...args), says);
    await assert.rejects(commandLine(service, { input: "[]" })("send", "--file", "-"), /must hold one request/);
    await assert.rejects(commandLine(service, { input: "{" })("send", "--file", "-"), /standard input is not JSON/);
  });

  test("a refusal is told with every fault and exit code 4, what is not there with 3", async (t) => {
    const sandbox = await sandboxFor(t);
    const env = { CARILLON_URL: service.url, CARILLON_API_KEY: service.key };
    const bad = await sandbox.run(["send", "--channel", "email", "--to", "nobody"], env);
    assert.equal(bad.code, REFUSED);
    assert.match(bad.stderr, /^carillon: VALIDATION_FAILED.*\n {2}\/.*\n/);
    const none = await sandbox.run(["show", "019b8f00-0000-7000-8000-000000000000"], env);
    assert.deepEqual([none.code, none.stdout], [NOT_FOUND, ""]);
    const stranger = await sandbox.run(["show", "019b8f00-0000-7000-8000-000000000000"], {
      ...env,
      CARILLON_API_KEY: "not-a-key",
    });
    assert.equal(stranger.code, REFUSED);
  });

  test("what failed is drawn with its attempts, its waits and the provider's words, and is among the dead", async () => {
    receiver.answer({ status: 503 });
    // What others wrote must not get at the terminal: this begins a sequence in some.
    const userId = "e\u009bve";
    const request = {
      channel: "webhook",
      recipient: { webhookUrl: `${receiver.url}/hook`, userId },
      content: { body: "Hello" },
      retryPolicy: { maxAttempts: 2, maxBackoffMs: 200 },
    };
    const line = commandLine(service, { input: JSON.stringify(request) });
    const { code, stdout } = await line("send", "--file", "-", "--wait");
    assert.equal(code, FAILED);
    const [id = ""] = UUID.exec(stdout) ?? [];
    assert.match(stdout, /^\S+ {2}failed\n {2}webhook to http:\S+hook e ve, normal\n/);
    assert.match(stdout, /● {2}accepted → queued\n/);
    assert.match(stdout, /● {2}attempt 1 by webhook: unavailable → pending {2}in \d+ ms/);
    assert.match(stdout, /│ {2}.*503/);
    assert.match(stdout, /│ {2}\d+ ms\n/, "how long it waited");
    assert.match(stdout, /● {2}attempt 2 by webhook: unavailable → failed/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    assert.equal((await run("show", id)).stdout, stdout);

    const dead = await until(async () => {
      const { stdout: listed } = await run("dead", "ls", "--channel", "webhook", "--user", userId);
      return listed === "" ? undefined : listed;
    });
    assert.match(dead, new RegExp(`^20\\S+Z {2}${id} {2}webhook {2}normal {2}2 attempts {2}webhook {2}\\S`));
    const { data } = JSON.parse((await run("dead", "ls", "--count", "1", "--json")).stdout);
    assert.equal(data[0].notificationId, id);
    assert.equal((await run("dead", "ls", "--channel", "sms")).stdout, "");
    const groups = await run("dead", "ls", "--by-cause", "--channel", "webhook");
    assert.match(groups.stdout, new RegExp(`^ +1 {2}webhook {2}webhook {2}.* {2}last 20\\S+ {2}${id}\n$`));
  });

  test("dead letters are planned, looked over and sent again, and nothing goes by accident", async (t) => {
    receiver.answer({ status: 400 });
    const hook = {
      channel: "webhook",
      recipient: { webhookUrl: `${receiver.url}/again`, userId: "may" },
      content: { body: "x" },
    };
    for (let n = 0; n < 3; n++)
      await commandLine(service, { input: JSON.stringify(hook) })("send", "--file", "-", "--wait");
    const planned = await run("dead", "plan", "--user", "may", "--rate", "50");
    const [, id = ""] = /^(\S+) {2}requeue {2}ready\n {2}3, of \d dead letters looked at\n/.exec(planned.stdout) ?? [];
    assert.match(planned.stdout, new RegExp(`Nothing is done yet: carillon dead apply ${id}\n$`));
    assert.match((await run("dead", "plans")).stdout, new RegExp(`^${id}  requeue  ready     0 of 3  made 20`));
    await assert.rejects(run("dead", "apply", id), /this would send 3 again.*: say --yes to do it/);
    receiver.answer({ status: 204 });
    const canary = await run("dead", "apply", id, "--canary", "1", "--yes");
    assert.equal(canary.code, 0);
    assert.match(canary.stdout, new RegExp(`requeue {2}waiting\n[\\s\\S]*1 done, 2 to go[\\s\\S]*dead continue ${id}`));

    // On a terminal there is a bar.
    const { stdout, code } = await onTerminal(t, ["dead", "continue", id]);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /applying \[[#-]+\] +\d+ % {2}\d of 3/);
    assert.match(stdout, /requeue {2}done\r\n[\s\S]*3 done, 0 to go/);
    await until(async () => {
      const { data } = JSON.parse((await run("dead", "ls", "--user", "may", "--json")).stdout);
      return data.length === 0 ? true : undefined;
    });

    const other = JSON.parse((await run("dead", "plan", "--user", "nobody", "--purge", "--json")).stdout);
    assert.deepEqual([other.kind, other.count], ["purge", 0]);
    assert.match((await run("dead", "abort", other.planId)).stdout, /purge {2}aborted/);
    await assert.rejects(run("dead", "plan", "--ids", id, "--user", "may"), /not both/);
    // Nobody who does not say yes, on a terminal either.
    const last = JSON.parse((await run("dead", "plan", "--json")).stdout);
    const refused = await onTerminal(t, ["dead", "apply", last.planId], "no\r");
    assert.equal(refused.code, FAILED);
    assert.match(refused.stdout, /This will send \d+ again.*Type yes: [\s\S]*carillon: nothing was done/);
  });

  /** In a pseudo-terminal, with what is typed. */
  const onTerminal = (t: TestContext, args: string[], typed?: string): Promise<Exit> =>
    terminal(t, args, service, typed).exited;

  test("top draws lanes, rates, workers and providers, redraws, and gives the terminal back on q", async (t) => {
    const screen = terminal(t, ["top", "--every", "1"], service);
    await screen.shows(/accepted \d/);
    await run("send", ...mail);
    // The second look has rates.
    await screen.shows(/accepted \d+ \(\d/);
    screen.type("q");
    const { code, stdout } = await screen.exited;
    assert.equal(code, 0, stdout);
    const ESC = "\u001b";
    assert.ok(
      stdout.startsWith(`${ESC}[?1049h${ESC}[?25l`) && stdout.includes(`${ESC}[?25h${ESC}[?1049l`),
      "the page before is back",
    );
    for (const text of [/urgent +0/, /normal +\d/, /worker +held +sending/, /dev +dev +email/, /q quits/])
      assert.match(stdout, text);
    assert.ok(stdout.includes(`${ESC}[1mcarillon`), "it is painted");
    const plain = terminal(t, ["top", "--once"], service, undefined, { NO_COLOR: "1" });
    const once = (await plain.exited).stdout;
    assert.match(once, /^carillon {2}http:\S+ {2}\d\d:\d\d:\d\d\r\naccepted \d+ \(/);
    assert.ok(!once.includes(ESC), "nothing is painted");
    const { queue, ledger, workers } = JSON.parse((await run("top", "--once", "--json")).stdout);
    assert.deepEqual([queue.depth.urgent, ledger.balanced, workers[0].alive], [0, true, true]);
  });

  test("the tail tells what happens, by channel, status and user, as lines or as JSON", async (t) => {
    const sandbox = await sandboxFor(t);
    const env = { ...process.env, CARILLON_URL: service.url, CARILLON_API_KEY: service.key };
    const program = join(import.meta.dirname, "..", "..", "src", "cli", "carillon.ts");
    const since = new Date().toISOString();
    const args = ["tail", "--json", "--since", since, "--user", "tess", "--status", "sent", "--channel", "email"];
    const tail = launch(process.execPath, [program, ...args], { cwd: sandbox.directory, env });
    t.after(() => tail.end("SIGKILL"));
    await run("send", ...mail, "--user", "somebody else");
    await run("send", "--channel", "inbox", "--to", "tess", "--title", "In the inbox");
    const sent = JSON.parse((await run("send", ...mail, "--user", "tess", "--json")).stdout);
    await tail.says(/\n/);
    const lines = tail.stdout().trim().split("\n");
    const facts: Fact[] = lines.map((line) => JSON.parse(line));
    assert.deepEqual(
      facts.map(({ type, notificationId }) => [type, notificationId]),
      [["sent", sent.notificationId]],
    );
    const told = await toldBy(run)("tail", "--since", since, "--user", "tess", "--channel", "email", "--count", "2");
    assert.match(
      told,
      /^\d\d:\d\d:\d\d\.\d{3} {2}accepted {5}email {4}normal {2}\S{36} {2}tess\n.* {2}sent {9}email .* by dev {2}in \d+ ms$/,
    );
  });

  test("keys are listed, made and revoked by who has one", async () => {
    const made = JSON.parse(
      (await run("key", "make", "--name", "a reader", "--scopes", "read", "--tenant", "acme", "--json")).stdout,
    );
    assert.deepEqual([made.tenant, made.scopes], ["acme", ["read"]]);
    const reader = commandLine({ ...service, key: made.key });
    assert.equal((await reader("dead", "ls")).code, 0);
    await assert.rejects(reader("key", "ls"), /FORBIDDEN/);
    assert.match(
      (await run("key", "ls")).stdout,
      new RegExp(`^${made.id}  acme  read  a reader  made 20\\S+  used 20`),
    );
    assert.equal((await run("key", "revoke", made.id)).stdout, `${made.id} is revoked\n`);
    assert.match((await run("key", "ls")).stdout, /revoked 20/);
    await assert.rejects(reader("dead", "ls"), /UNAUTHENTICATED/);
    await assert.rejects(run("key", "make", "--name", "x", "--scopes", "reed"), /--scopes must be some of/);
    assert.equal((await run("key", "make", "--name", "x")).code, EX_USAGE);
  });

  test("keys are listed, made and revoked in the database by who has none, and the audit log says by whom", async (t) => {
    const sandbox = await sandboxFor(t);
    const env = { DATABASE_URL: service.databaseUrl, CARILLON_API_KEY: undefined, CARILLON_URL: undefined };
    const make = ["key", "make", "--name", "lost and found", "--scopes", "admin", "--json"];
    const { code, stdout, stderr } = await sandbox.run(make, env);
    assert.equal(code, 0, stderr);
    const { id, key } = JSON.parse(stdout);
    assert.equal((await service.ask("GET", "/v1/keys", undefined, { key })).status, 200);
    const listed = await sandbox.run(["key", "ls", "--database"], { ...env, CARILLON_API_KEY: service.key });
    assert.match(listed.stdout, new RegExp(`^${id}  default  admin  lost and found`, "m"));
    assert.ok(!listed.stdout.includes(key));
    // The last admin key that is stored: who is at the database makes the next one there.
    const revoked = await sandbox.run(["key", "revoke", id], env);
    assert.equal(revoked.code, 0, revoked.stderr);
    assert.equal((await sandbox.run(["key", "revoke", id], env)).code, NOT_FOUND);
    await until(async () =>
      (await service.ask("GET", "/v1/keys", undefined, { key })).status === 401 ? true : undefined,
    );
    const audit = (await run("audit", "--object", `key:${id}`)).stdout;
    assert.match(
      audit,
      /command-line key revoke \(.+\) {2}key\.revoke[\s\S]*command-line key make \(.+\) {2}key\.create/,
    );
  });
});
