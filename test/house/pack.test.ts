// The package as its users get it: packed, installed into an empty folder, and started from there, on the Node that
// the machine offers rather than on ours.

import assert from "node:assert/strict";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { onOldestNode } from "../support/oldest-node.ts";
import { temporaryHome } from "../support/postgres.ts";
import { cleanEnvironment, type Exit, gone, launch } from "../support/process.ts";
import { asking, email } from "../support/service.ts";

const root = join(import.meta.dirname, "..", "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const README = readFileSync(join(root, "README.md"), "utf8");

/** npm puts directories in front that have our own Node. */
const path = (process.env.PATH ?? "").split(delimiter).filter((directory) => !directory.includes("node_modules"));
const env = cleanEnvironment({ PATH: path.join(delimiter), PORT: "0" });

const FILES = {
  "package.json": '{ "private": true }',
  "library.mjs": `
    import { createCarillon } from "carillon";
    const carillon = createCarillon();
    const { notificationId } = await carillon.send({ channel: "console", content: { body: "from the library" } });
    await carillon.close();
    console.log("sent", notificationId);`,
  "client.mjs": `
    import { createClient } from "carillon/client";
    const client = createClient({ url: process.argv[2], key: process.argv[3] });
    const { notificationId } = await client.send({ channel: "console", content: { body: "from the client" } });
    console.log("sent", (await client.get(notificationId)).notificationId);`,
  "inbox.mjs": `
    import { CarillonInbox } from "carillon/inbox";
    console.log(typeof CarillonInbox, CarillonInbox.observedAttributes.join(" "));`,
  "typed.ts": `
    import { type Acceptance, createCarillon } from "carillon";
    import { createClient, type Ledger } from "carillon/client";
    import type { CarillonInbox } from "carillon/inbox";
    export const accepted: Promise<Acceptance> = createCarillon().send({ channel: "console", content: { body: "" } });
    export const ledger: Promise<Ledger> = createClient({ url: "", key: "" }).ledger();
    export const unreadOf = (inbox: CarillonInbox): number => inbox.unread;
    // @ts-expect-error it is a number
    export const wordsOf = (inbox: CarillonInbox): string => inbox.unread;
    // @ts-expect-error there is no such channel
    createCarillon().send({ channel: "pigeon", content: {} });
    // @ts-expect-error the key is missing
    createClient({ url: "" });`,
};

test("the package can be installed into an empty folder, started and imported", { timeout: 600_000 }, async (t) => {
  const folder = await temporaryHome();
  const app = join(folder, "app");
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const run = (command: string, args: string[], cwd = app): Promise<Exit> => launch(command, args, { cwd, env }).exited;
  await mkdir(app);
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(app, name), text);

  succeeded(await run("npm", ["pack", "--pack-destination", folder], root));
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "";
  // Asked for first, because an installation without a network would try for minutes. What npm has kept may do then.
  const isReached =
    (await run("npm", ["view", "pg", "version", "--fetch-retries=0", "--fetch-timeout=5000"])).code === 0;
  const options = ["--no-audit", "--no-fund", isReached ? "--prefer-offline" : "--offline"];
  // As on the oldest Node that we allow: npm then warns of every package that does not.
  const installing = { cwd: app, env: onOldestNode(env) };
  const installed = await launch("npm", ["install", ...options, join(folder, tarball)], installing).exited;
  if (!isReached && installed.code !== 0) {
    t.skip("SKIPPED, THE PACKAGE WAS NOT TESTED: npm reaches no registry to install its dependencies from");
    return;
  }
  succeeded(installed);
  assert.doesNotMatch(installed.stderr, /EBADENGINE/);
  t.diagnostic(`installed for Node ${succeeded(await run("node", ["--version"])).stdout.trim()}`);

  // What a dependency of ours needs too is there rightly.
  const { packages }: { packages: { [path: string]: { dev?: true } } } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const onlyForUs = Object.keys(manifest.devDependencies).filter((name) =>
    Object.entries(packages).every(([path, { dev }]) => dev || !path.endsWith(`node_modules/${name}`)),
  );
  assert.ok(onlyForUs.length > 5);
  for (const name of onlyForUs) {
    assert.ok(!existsSync(join(app, "node_modules", name)), `${name} is installed, but only developers need it`);
  }
  for (const entry of [".", "./client", "./inbox"]) {
    assert.ok(existsSync(join(app, "node_modules/carillon", manifest.exports[entry].types)), `no types for ${entry}`);
  }
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  // Libraries are checked too: what our declarations import has to be there, in an application without types for pg.
  const strict = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2023", "--types", "node"];
  for (const name of ["@types/node", "undici-types"]) {
    cpSync(join(root, "node_modules", name), join(app, "node_modules", name), { recursive: true });
  }
  assert.ok(!existsSync(join(app, "node_modules/@types/pg")));
  const samples = [...README.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text = ""], n) => ({
    name: `sample-${n}.mts`,
    text,
  }));
  assert.ok(samples.length >= 2);
  for (const { name, text } of samples) await writeFile(join(app, name), text);
  succeeded(await run("node", [tsc, ...strict, "typed.ts", ...samples.map(({ name }) => name)]));
  await tellsOfOldNode(app, run);

  const service = launch("npx", ["carillon", "start"], { cwd: app, env });
  t.after(() => service.end("SIGKILL"));
  const [, url = ""] = await service.says(/^carillon listening on (http:\S+)$/m);
  const [, key = ""] = await service.says(/^admin key, shown only this once: (\S+)$/m);
  assert.equal((await asking(url)("POST", "/v1/notifications", email(), { key })).status, 202);
  assert.match(succeeded(await run("node", ["client.mjs", url, key])).stdout, /^sent \S+\n$/);
  // The browser's modules were made beforehand: what makes them is not installed.
  assert.match(await (await fetch(`${url}/inbox.js`)).text(), /carillon-inbox/);
  assert.match(await (await fetch(`${url}/demo.js`)).text(), /carillon-unauthorized/);
  assert.match(succeeded(await run("node", ["inbox.mjs"])).stdout, /^function url user-id /);
  const postmaster = Number.parseInt(readFileSync(join(app, ".carillon/postgres/data/postmaster.pid"), "utf8"), 10);
  assert.match((await service.end("SIGTERM")).stderr, /"stopped"/);
  await gone(postmaster);

  // On the database that the service has left.
  const library = succeeded(await run("node", ["library.mjs"]));
  assert.match(library.stdout, /^sent \S+\n$/);
  assert.match(library.stderr, /there is no DATABASE_URL: an embedded PostgreSQL keeps the notifications/);
});

/** A config file in TypeScript, on the machine's own Node. */
async function tellsOfOldNode(app: string, run: (command: string, args: string[]) => Promise<Exit>): Promise<void> {
  await writeFile(join(app, "carillon.config.ts"), "export default { port: 8001 as number };");
  const { code, stdout, stderr } = await run("npx", ["carillon", "check"]);
  await rm(join(app, "carillon.config.ts"));
  if (code === 0) assert.match(stdout, /"port": 8001/);
  else assert.match(stderr, /expected Node 22\.18 or newer for a \.ts file, or else a \.js or \.json file/);
}

function succeeded(exit: Exit): Exit {
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
  return exit;
}
