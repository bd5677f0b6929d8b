// carillon endpoint … and carillon callback …

import assert from "node:assert/strict";
import { test } from "node:test";
import { commandLine, toldBy } from "../support/command-line.ts";
import { startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";

test("the command line makes, shows, changes, pauses, rotates, tests and deletes endpoints, and sends callbacks again", async (t) => {
  const service = await startService({ allowAddresses: ["127.0.0.1"] });
  t.after(() => service.stop());
  const receiver = await startStandIn();
  t.after(() => receiver.close());
  const run = toldBy(commandLine(service));
  const made = await run(
    "endpoint",
    "add",
    `${receiver.url}/hook`,
    "--events",
    "sent,failed",
    "--policy",
    "aggressive",
  );
  const [, id = "", secret = ""] = /^(ep_\w+) [\s\S]*secret, shown only this once: (whsec_\S+)$/.exec(made) ?? [];
  assert.ok(id && secret, made);
  assert.match(await run("endpoint", "ls"), new RegExp(`^${id}  active  aggressive  http`));
  assert.match(
    await run("endpoint", "set", id, "--policy", "persistent", "--fifo", "user"),
    /persistent, in order by user/,
  );
  assert.match(await run("endpoint", "show", id), /events sent failed/);
  assert.match(await run("endpoint", "pause", id), /--reason/);
  assert.equal(await run("endpoint", "pause", id, "--reason", "a release"), `${id} is paused`);
  assert.match(await run("endpoint", "show", id), /paused: a release/);
  assert.equal(await run("endpoint", "resume", id), `${id} goes on`);
  assert.match(await run("endpoint", "rotate", id), /whsec_[\s\S]*whpk_[\s\S]*until 20/);
  receiver.answer({ status: 200, body: "thanks" });
  assert.match(await run("endpoint", "test", id), /^delivered: 200 in \d+ ms\nthanks$/);
  assert.equal(await run("endpoint", "deliveries", id), "");
  assert.match(await run("endpoint", "replay", id), /--since/);
  assert.equal(await run("endpoint", "replay", id, "--since", "2026-01-01T00:00:00Z"), "0 are sent again");
  assert.equal(await run("callback", "dead"), "");
  assert.equal(await run("callback", "requeue", "--endpoint", id), "0 are sent again");
  assert.equal(await run("endpoint", "delete", id), `${id} is deleted`);
  await assert.rejects(run("endpoint", "show", id), /NOT_FOUND/);
  assert.match(await run("endpoint"), /there is no command endpoint alone: endpoint ls, endpoint show/);
  assert.match(await run("endpoint", "show"), /endpoint show needs ID/);
  assert.match(await run("endpoint", "ls", "x"), /endpoint ls takes no argument x/);
  assert.match(await run("callback", "dance"), /there is no command callback dance/);
});
