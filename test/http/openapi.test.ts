// The OpenAPI document says everything there is to say: a name, a description and an example for whatever it names, and the examples are
// what the schemas allow.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import { NAMES } from "#http/describe/names.ts";
import { readDocument, type Shape } from "../support/api-document.ts";

let document: Awaited<ReturnType<typeof readDocument>>;
before(async () => {
  document = await readDocument();
});

/** Calls back with each field, and with what has none of its own. */
function walk(shape: Shape, at: string, seen: (field: Shape, at: string) => void): void {
  for (const [name, field] of Object.entries(shape.properties ?? {})) {
    seen(field, `${at}.${name}`);
    walk(field, `${at}.${name}`, seen);
  }
  if (shape.items) walk(shape.items, `${at}[]`, seen);
  for (const [n, one] of (shape.anyOf ?? []).entries()) walk(one, `${at}|${n}`, seen);
}

const hasFields = (shape: Shape): boolean =>
  shape.$ref !== undefined ||
  Object.keys(shape.properties ?? {}).length > 0 ||
  (shape.items !== undefined && hasFields(shape.items)) ||
  (shape.anyOf?.some(hasFields) ?? false);

test("every operation, parameter and field has a description, and every one that has no fields of its own an example", () => {
  const wanting: string[] = [];
  const field = (shape: Shape, at: string) => {
    if (!shape.description) wanting.push(`${at}: description`);
    if (!hasFields(shape) && !shape.examples?.length) wanting.push(`${at}: example`);
  };
  for (const { name, description } of document.tags) if (!description) wanting.push(`tag ${name}: description`);
  for (const [name, shape] of Object.entries(document.components.schemas)) walk(shape, name, field);
  for (const { at, operation } of document.operations) {
    for (const name of ["operationId", "summary", "description"] as const)
      if (!operation[name]) wanting.push(`${at}: ${name}`);
    for (const { name, in: place, schema, description } of operation.parameters ?? [])
      field({ ...schema, ...(description !== undefined && { description }) }, `${at} ${place} ${name}`);
    for (const { shape, example, at: where } of document.bodiesOf(operation)) {
      walk(shape, `${at} ${where}`, field);
      if (example === undefined) wanting.push(`${at} ${where}: example`);
    }
  }
  assert.deepEqual([...new Set(wanting)], []);
});

test("every schema that has a name stands where the table says, and nowhere under another name", () => {
  const { schemas } = document.components;
  assert.deepEqual(Object.keys(schemas).sort(), [...Object.keys(NAMES), "Problem"].sort());
  const same = Object.entries(schemas).filter(([, { $ref }]) => $ref !== undefined);
  assert.deepEqual(same, []);
});

test("operation ids are one each, and are what the client calls them", () => {
  const ids = document.operations.map(({ operation }) => operation.operationId);
  assert.ok(ids.length > 100);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.every((id) => /^[a-z][A-Za-z]+$/.test(id)));
});

test("every example is what its schema allows", () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema({ $id: "doc", components: document.components });
  const wrong: string[] = [];
  const check = (schema: Shape, value: unknown, at: string) => {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"doc#/components');
    const validate = ajv.compile(JSON.parse(text));
    if (!validate(value)) wrong.push(`${at}: ${ajv.errorsText(validate.errors)}`);
  };
  const field = (shape: Shape, at: string) => {
    for (const example of shape.examples ?? []) check(shape, example, at);
  };
  for (const [name, shape] of Object.entries(document.components.schemas)) walk(shape, name, field);
  for (const { at, operation } of document.operations) {
    for (const { name, schema } of operation.parameters ?? []) field(schema, `${at} ${name}`);
    for (const { shape, example, at: where } of document.bodiesOf(operation)) {
      walk(shape, `${at} ${where}`, field);
      check(shape, example, `${at} ${where}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("Redocly's recommended rules find nothing to say, not even a warning", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "carillon-openapi-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const { operations: _o, bodiesOf: _b, ...served } = document;
  await writeFile(join(folder, "openapi.json"), JSON.stringify(served));
  const command = join(import.meta.dirname, "../../node_modules/@redocly/cli/bin/cli.js");
  const args = [command, "lint", "openapi.json", "--extends", "recommended", "--format", "json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: folder,
    // It asks nobody whether there is a newer one, and tells nobody that it was used.
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    maxBuffer: 2 ** 26,
  }).catch(({ stdout }: { stdout: string }) => ({ stdout }));
  const { totals, problems } = JSON.parse(stdout);
  assert.deepEqual([totals, problems], [{ errors: 0, warnings: 0, ignored: 0 }, []]);
});
