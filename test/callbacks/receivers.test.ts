// What docs/callbacks.md tells receivers to run is run, in each language that this machine has, on what a receiver got; and so are the
// libraries of others. What is missing is said in one line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { debianProgram } from "../support/debian.ts";
import { pythonWith } from "../support/python.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/callbacks.md"), "utf8");
const codeOf = (language: string): string =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)?.[1] ??
  assert.fail(`no ${language} on the page`);

/** How each is asked for its version, and Debian's package for where there is none. */
const PROGRAMS = {
  php: { asked: "--version", packageName: "php-cli" },
  go: { asked: "version", packageName: "golang-go" },
};
async function without(program: keyof typeof PROGRAMS): Promise<string | undefined> {
  const { asked, packageName } = PROGRAMS[program];
  const isThere = () =>
    run(program, [asked]).then(
      () => true,
      () => false,
    );
  if (await isThere()) return undefined;
  debianProgram(packageName, `/usr/bin/${program}`);
  return (await isThere()) ? undefined : `no ${program}`;
}
const python = await pythonWith("standardwebhooks-1.0.0", "standardwebhooks==1.0.0");
const missing = {
  python: "missing" in python ? python.missing : undefined,
  go: await without("go"),
  php: await without("php"),
};
for (const [language, why] of Object.entries(missing))
  if (why !== undefined) process.stdout.write(`SKIPPED: callbacks were not verified in ${language}: ${why}\n`);

type Got = { headers: { [name: string]: string }; body: string };

let service: Service;
let receiver: Awaited<ReturnType<typeof startStandIn>>;
let folder: string;
let endpoint: { id: string; secret: string; publicKey: string };
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-receivers-"));
  receiver = await startStandIn();
  service = await startService({ allowAddresses: ["127.0.0.1"] });
  const { id } = (await service.ask("POST", "/v1/endpoints", { url: receiver.url })).body;
  // Twice as many signatures while they are being replaced.
  endpoint = (await service.ask("POST", `/v1/endpoints/${id}/rotate`)).body;
});
after(async () => {
  await service.stop();
  await receiver.close();
  await rm(folder, { recursive: true, force: true });
});

/** A fresh one for each: what took long to build would think it too old. */
async function received(): Promise<Got> {
  receiver.answer({ status: 204 });
  assert.equal((await service.ask("POST", `/v1/endpoints/${endpoint.id}/test`)).body.delivered, true);
  const { headers, body } = receiver.received.at(-1) ?? assert.fail("nothing arrived");
  return { headers: headers as Got["headers"], body };
}

/** Runs a program that reads { key, headers, body } as JSON and ends with 0 if it believes them. */
async function believes(program: string, args: string[], key: string, got: Got): Promise<boolean> {
  const file = join(folder, "given.json");
  await writeFile(file, JSON.stringify({ key, ...got }));
  return run(program, [...args, file]).then(
    () => true,
    (error: { code: number; stderr: string }) => {
      assert.match(error.stderr, /signature/i, `${program} could not be run: ${error.stderr}`);
      return false;
    },
  );
}
async function judges(program: string, args: string[], key: string): Promise<void> {
  const got = await received();
  assert.equal(await believes(program, args, key, got), true, "what we sent");
  assert.equal(await believes(program, args, key, { ...got, body: `${got.body} ` }), false, "what somebody changed");
}
async function written(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

test("the libraries of standardwebhooks and svix believe what a receiver got", async () => {
  const got = await received();
  for (const library of [StandardWebhook, SvixWebhook]) {
    new library(endpoint.secret).verify(got.body, got.headers);
    assert.throws(() => new library(endpoint.secret).verify(`${got.body} `, got.headers), /signature/);
  }
});

test("Node, as the page has it", async () => {
  const client = pathToFileURL(join(root, "src/client/client.ts")).href;
  const { receive } = await import(
    pathToFileURL(await written("receive.mjs", codeOf("js").replace("carillon/client", client))).href
  );
  const got = await received();
  for (const key of [endpoint.secret, endpoint.publicKey]) {
    assert.equal((await receive(key, got.headers, got.body)).type, "endpoint.test");
    await assert.rejects(receive(key, got.headers, `${got.body} `), /signature/);
  }
});

test("Python and its library standardwebhooks, as the page has it", {
  skip: missing.python ?? false,
}, async () => {
  const file = await written(
    "receive.py",
    `${codeOf("python")}
import json, sys
given = json.load(open(sys.argv[1]))
assert receive(given["key"], given["headers"], given["body"])["type"] == "endpoint.test"
`,
  );
  const { home } = python as { home: string };
  await judges(join(home, "bin/python"), [file], endpoint.secret);
});

test("Go, as the page has it", { skip: missing.go ?? false }, async () => {
  const imports = ["crypto/ed25519", "encoding/base64", "encoding/json", "errors", "os", "strconv", "strings", "time"];
  const file = await written(
    "main.go",
    `package main
import (\n${imports.map((name) => `"${name}"`).join("\n")}\n)
${codeOf("go")}
func main() {
	var given struct { Key string; Headers map[string]string; Body string }
	text, _ := os.ReadFile(os.Args[1])
	if err := json.Unmarshal(text, &given); err != nil { panic(err) }
	header := func(name string) string { return given.Headers[name] }
	if err := receive(given.Key, header, []byte(given.Body), time.Now()); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}
`,
  );
  const program = join(folder, "receive");
  await run("go", ["build", "-o", program, file], { env: { ...process.env, GOFLAGS: "-mod=mod", GO111MODULE: "off" } });
  await judges(program, [], endpoint.publicKey);
});

test("PHP, as the page has it", { skip: missing.php ?? false }, async () => {
  const file = await written(
    "receive.php",
    `<?php
${codeOf("php")}
$given = json_decode(file_get_contents($argv[1]), true);
try {
    if (receive($given['key'], $given['headers'], $given['body'])['type'] !== 'endpoint.test') exit(2);
} catch (RuntimeException $error) {
    fwrite(STDERR, $error->getMessage());
    exit(1);
}
`,
  );
  await judges("php", [file], endpoint.secret);
});
