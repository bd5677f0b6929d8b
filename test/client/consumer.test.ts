// The client as an application compiles it: strictly, its declarations included, with nothing installed but the built package itself.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { examplesOf, type Shown } from "#http/pages/examples.ts";
import { readDocument } from "../support/api-document.ts";

const root = join(import.meta.dirname, "../..");
const tsc = join(root, "node_modules/typescript/bin/tsc");
const run = promisify(execFile);
let app: string;

before(async () => {
  app = await mkdtemp(join(tmpdir(), "carillon-consumer-"));
  const home = join(app, "node_modules/carillon");
  await mkdir(home, { recursive: true });
  await cp(join(root, "package.json"), join(home, "package.json"));
  // As `npm run build` does, of the client alone: what its declarations need comes along, and nothing else may.
  const project = {
    extends: join(root, "tsconfig.build.json"),
    include: [],
    files: [join(root, "src/client/client.ts")],
  };
  await writeFile(join(app, "build.json"), JSON.stringify(project));
  const out = [
    "--outDir",
    join(home, "dist"),
    "--rootDir",
    join(root, "src"),
    "--typeRoots",
    join(root, "node_modules/@types"),
  ];
  await run(process.execPath, [tsc, "-p", join(app, "build.json"), ...out], { cwd: root });
  await writeFile(join(home, "dist/package.json"), '{ "type": "module", "imports": { "#*.ts": "./*.js" } }');
});
after(() => rm(app, { recursive: true, force: true, maxRetries: 5 }));

const STRICT = "--noEmit --strict --exactOptionalPropertyTypes --skipLibCheck false --module nodenext --target es2023";
const LIBRARIES = "--lib es2023,dom --types";

/** What the compiler says of it; nothing if it is well. */
async function complaints(files: { [name: string]: string }): Promise<string> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(app, name), text);
  const args = [...STRICT.split(" "), ...LIBRARIES.split(" "), "", ...Object.keys(files)];
  return run(process.execPath, [tsc, ...args], { cwd: app }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
}

test("it compiles strictly, without skipLibCheck and without further packages; a request has what its channel needs", async () => {
  const text = `
    import { CarillonError, type Client, createClient, type NotificationRequest, UnreachableError, verifyCallback } from "carillon/client";
    const client: Client = createClient({ url: "http://127.0.0.1:8420", key: "ck_" });
    await client.send({ channel: "email", recipient: { email: "a@b.co" }, content: { subject: "Hi", htmlBody: "<p>" } });
    await client.send({ channel: "email", recipient: { email: "a@b.co" }, content: { templateId: "welcome" } });
    await client.send({ channel: "push", recipient: { userId: "u" }, content: { title: "Hi" }, priority: "urgent" });
    await client.send({ channel: "console", content: {} });
    // @ts-expect-error a mail needs an address
    await client.send({ channel: "email", recipient: { userId: "u" }, content: { subject: "Hi", textBody: "Hi" } });
    // @ts-expect-error and a body
    await client.send({ channel: "email", recipient: { email: "a@b.co" }, content: { subject: "Hi" } });
    // @ts-expect-error not only the key of it
    await client.send({ channel: "sms", recipient: { phone: "+33612345678" }, content: undefined });
    // @ts-expect-error a text message needs a phone
    await client.send({ channel: "sms", recipient: { email: "a@b.co" }, content: { body: "Hi" } });
    // @ts-expect-error there is no such channel
    await client.send({ channel: "pigeon", content: {} });
    // @ts-expect-error nor such a field
    await client.send({ channel: "console", content: { colour: "red" } });
    export const phoneOf = (request: NotificationRequest): string | undefined =>
      request.channel === "sms" ? request.recipient.phone : undefined;
    // @ts-expect-error of a push nobody knows whether there is an address
    export const emailOf = (request: Extract<NotificationRequest, { channel: "push" }>): string => request.recipient.email;
    const { data, nextCursor } = await client.deadLetters.list({ channel: "email", limit: 10 });
    export const errors: (string | undefined)[] = data.map(({ error }) => error);
    export const cursor: string | null = nextCursor;
    // @ts-expect-error by ids or by filter, and not by both
    await client.deadLetters.requeue({ ids: [], filter: {} });
    for await (const fact of client.events.follow({ types: ["sent"] })) if (fact.type === "sent") break;
    for await (const event of client.inbox.follow("u")) if (event.event === "notification") void event.item.title;
    try {
      await client.templates.put("welcome", { channel: "email", name: "Welcome", content: { subject: "Hi {{ name }}" } });
    } catch (error) {
      if (error instanceof CarillonError && error.code === "VALIDATION_FAILED") void [error.method, error.url, error.problem.detail];
      if (error instanceof UnreachableError) void error.url;
    }
    void verifyCallback;
  `;
  assert.equal(await complaints({ "consumer.mts": text }), "");
});

test("every example for the client compiles", async () => {
  const { operations } = await readDocument();
  const files = operations.map(({ at, operation }): [string, string] => {
    const [method = "", path = ""] = at.split(" ");
    return [`example-${operation.operationId}.mts`, examplesOf(method, path, operation as unknown as Shown).typescript];
  });
  assert.ok(files.length > 100 && files.every(([, text]) => text.includes("carillon.")));
  assert.equal(await complaints(Object.fromEntries(files)), "");
});
