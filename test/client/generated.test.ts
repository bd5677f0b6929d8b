// The client and the API are the same: a method for every route, none besides, and types as the schemas have them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { METHODS, signatureOf } from "#client/methods.ts";
import { clientTypes } from "../../scripts/client-types.ts";
import { type Document, type Operation, readDocument } from "../support/api-document.ts";

const root = join(import.meta.dirname, "../..");
const file = join(root, "src/client/generated.ts");

let document: Document;
before(async () => {
  document = await readDocument();
});

test("every route has a method, and every method a route", () => {
  const served = document.operations.map(({ at }) => at);
  assert.ok(served.length > 100);
  assert.deepEqual(
    served.filter((at) => METHODS[at] === undefined),
    [],
    "routes without a line in src/client/methods.ts",
  );
  assert.deepEqual(
    Object.keys(METHODS).filter((at) => !served.includes(at)),
    [],
    "lines in src/client/methods.ts without a route",
  );
});

test("the types are those of the schemas", () => {
  const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
  const args = [biome, "check", "--write", "--stdin-file-path", file];
  const written = execFileSync(process.execPath, args, { cwd: root, input: clientTypes(document), encoding: "utf8" });
  // Not by chance, and not in CI: whoever sets it wants the file to be written.
  if (process.env.CARILLON_WRITE === "1") writeFileSync(file, written);
  assert.equal(readFileSync(file, "utf8"), written, "src/client/generated.ts is to be written anew: see its header");
});

/** What the operation's example says, in the order in which the method takes it. */
function argumentsOf(written: string, { parameters = [], requestBody }: Operation): unknown[] {
  const exampleOf = (name: string | undefined) => parameters.find((one) => one.name === name)?.schema.examples?.[0];
  const body = requestBody?.content["application/json"]?.example as { [field: string]: unknown } | undefined;
  return signatureOf(written).args.map((arg) => {
    const [place, field] = arg.split(".");
    if (arg.startsWith('"')) return arg.slice(1, -1);
    if (place === "raw") return { body: "reported", headers: { "x-signature": "s" } };
    if (place === "body") return field === undefined ? body : body?.[field];
    if (place === "query") return field === undefined ? undefined : exampleOf(field);
    return exampleOf(arg);
  });
}

test("every method asks for what its operation is", async () => {
  const asked: { method: string; path: string; body: unknown }[] = [];
  const fetching: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input));
    const text = typeof init?.body === "string" ? init.body : undefined;
    asked.push({ method: init?.method ?? "GET", path: decodeURIComponent(pathname), body: text });
    const isStream = new Headers(init?.headers).get("accept") === "text/event-stream";
    return isStream ? new Response("event: reset\n\n") : Response.json({});
  };
  const client = createClient({ url: "http://carillon.test", key: "k", fetch: fetching, sleep: async () => {} });
  for (const { at, operation } of document.operations) {
    const written = METHODS[at] ?? "";
    const { names } = signatureOf(written);
    const method = names.reduce<unknown>((found, name) => (found as { [name: string]: unknown })[name], client);
    assert.equal(typeof method, "function", written);
    const answer = (method as (...given: unknown[]) => unknown)(...argumentsOf(written, operation));
    if (answer instanceof Promise) await answer;
    else await (answer as AsyncGenerator).next();
    const { method: verb, path, body } = asked.at(-1) ?? { method: "", path: "", body: undefined };
    const [wanted, template = ""] = at.split(" ");
    const filled = template.replace(/:(\w+)/g, (_, name: string) =>
      String(operation.parameters?.find((one) => one.name === name)?.schema.examples?.[0]),
    );
    assert.deepEqual([verb, path], [wanted, filled], written);
    const example = operation.requestBody?.content["application/json"]?.example;
    if (example === undefined || body === undefined) continue;
    const { idempotencyKey: _, notifications, ...rest } = JSON.parse(String(body));
    const { idempotencyKey: _k, notifications: wantedOnes, ...wantedRest } = example as { [name: string]: unknown };
    assert.deepEqual(rest, wantedRest, written);
    assert.equal((notifications as unknown[] | undefined)?.length, (wantedOnes as unknown[] | undefined)?.length);
  }
});
