// Imports point down only, and the core stays free of the outside world.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { PROBLEMS } from "#domain/problems.ts";

const src = join(import.meta.dirname, "..", "..", "src");

/** From top to bottom; a file may import from its own layer and from those below. */
const LAYERS = [
  ["index.ts", "cli"],
  ["supervisor"],
  ["main.ts"],
  ["wiring"],
  ["config", "roles"],
  ["http"],
  ["steps"],
  // Telemetry words what queue and guards have to say.
  ["telemetry"],
  ["following"],
  ["inbox", "queue", "channels", "guards", "templates", "embedded", "archive", "sinks", "sources"],
  ["record", "wire"],
  ["store"],
  ["client", "timing"],
  ["domain"],
];
/** What the bottom layers may take from npm: schemas are data, and Ajv reads them. */
const ALLOWED_PACKAGES: { [layer: string]: string[] } = {
  domain: ["typebox", "ajv/dist/2020.js", "croner", "node:crypto"],
  // Types only: a transaction needs a pool.
  steps: ["pg"],
  // Of itself it does nothing, and an application that has traces has it anyway.
  client: ["@opentelemetry/api"],
};

const files = globSync("**/*.ts", { cwd: src });
const layerOf = (file: string) =>
  LAYERS.findIndex((names) => names.some((name) => file === name || file.startsWith(`${name}/`)));
const importsOf = (file: string) =>
  [...readFileSync(join(src, file), "utf8").matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^"]+)";/gms)].map(
    ([, from]) => from as string,
  );

test("every source file belongs to a layer", () => {
  assert.deepEqual(
    files.filter((file) => layerOf(file) === -1),
    [],
  );
  assert.ok(files.length > 30);
});

test("imports point down only", () => {
  const wrong: string[] = [];
  let seen = 0;
  for (const file of files) {
    for (const from of importsOf(file).filter((name) => /^[.#]/.test(name))) {
      seen++;
      const target = from.startsWith("#") ? from.slice(1) : join(dirname(file), from);
      if (layerOf(target) < layerOf(file)) wrong.push(`${file} imports ${target}`);
    }
  }
  assert.ok(seen > 50, "the test reads the imports");
  assert.deepEqual(wrong, []);
});

test("domain, steps and client import no packages but those named", () => {
  const wrong = files.flatMap((file) => {
    const allowed = ALLOWED_PACKAGES[file.split("/")[0] ?? ""];
    return allowed
      ? importsOf(file)
          .filter((from) => !/^[.#]/.test(from) && !allowed.includes(from))
          .map((from) => `${file} imports ${from}`)
      : [];
  });
  assert.deepEqual(wrong, []);
});

test("only the traces, and the client that joins its caller's, know OpenTelemetry", () => {
  const knowing = files.filter((file) => importsOf(file).some((from) => from.startsWith("@opentelemetry/")));
  assert.ok(knowing.includes("telemetry/traces/traces.ts"), "the test finds them where they are");
  assert.deepEqual(
    knowing.filter((file) => !file.startsWith("telemetry/traces/")),
    ["client/call.ts"],
  );
});

/** What a function that only looks is called. */
const READS = /^(find|list|read|count)[A-Z]/;

test("routes parse, call a step or read, and render: they write nothing themselves", () => {
  const routes = files.filter((file) => file.startsWith("http/routes/"));
  const named = routes.flatMap((file) =>
    [
      ...readFileSync(join(src, file), "utf8").matchAll(/^import (type )?\{([^}]*)\} from "#((\w+)\/[^"]+)";/gms),
    ].flatMap(([, isType, names = "", target, room = ""]) =>
      names
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "" && !isType && !name.startsWith("type "))
        .map((name) => ({ file, room, target, name })),
    ),
  );
  const wrong = named
    .filter(({ room, name }) => (room === "queue" ? true : /^(store|record)$/.test(room) && !READS.test(name)))
    .map(({ file, target, name }) => `${file} takes ${name} from ${target}`);
  assert.ok(named.length > 50, "the test reads the imports");
  assert.deepEqual(wrong, []);
  const holding = routes.filter((file) =>
    /\.query\(|\binTransaction\b|from "pg"/.test(readFileSync(join(src, file), "utf8")),
  );
  assert.deepEqual(holding, [], "routes hold no connections and no transactions");
});

/** What in the room of such steps changes nothing that anybody asked for: it makes a step, words a problem, tells who sees what. */
const NO_STEPS = ["createAcknowledge", "readAccounts", "unrendered", "visibleTo"];

test("what changes something on somebody's behalf takes an actor", () => {
  const steps = files
    .filter((file) => file.startsWith("steps/manage/"))
    .flatMap((file) => {
      const text = readFileSync(join(src, file), "utf8");
      const functions = text.matchAll(/^export (?:async )?function (\w+)\((.*?)\)(?:: [^\n]*)? \{$/gms);
      const arrows = text.matchAll(/^export const (\w+) = (?:async )?\((.*?)\)(?:: [^\n]*)? =>/gms);
      return [...functions, ...arrows].map(([, name = "", parameters = ""]) => ({ file, name, parameters }));
    })
    .filter(({ name }) => !READS.test(name) && !NO_STEPS.includes(name));
  assert.ok(steps.length > 20, "the test reads the steps");
  const without = steps.filter(({ parameters }) => !/: (\w+Actor|Caller|Maker)\b/.test(parameters));
  assert.deepEqual(
    without.map(({ file, name }) => `${file}: ${name}`),
    [],
  );
});

test("SQL stands only in the store", () => {
  const statement = /\b(select\s+[\w*(]|insert into|delete from|update carillon)/i;
  const outside = files.filter(
    (file) =>
      !/^(store|record|queue)\//.test(file) &&
      /["`][^"`]*\bcarillon\.\w+/.test(readFileSync(join(src, file), "utf8")) &&
      statement.test(readFileSync(join(src, file), "utf8")),
  );
  assert.deepEqual(outside, []);
});

test("only the queue's PostgreSQL engine knows its tables", () => {
  const naming = files.filter((file) =>
    /\bcarillon\.(ready|later|claims|leased|schedule|handoffs|handed)\b/.test(readFileSync(join(src, file), "utf8")),
  );
  assert.ok(naming.length > 0, "the test finds them where they are");
  assert.deepEqual(
    naming.filter((file) => !file.startsWith("queue/postgres/")),
    [],
  );
});

test("only the command line and the library read the environment", () => {
  const readers = files.filter((file) => readFileSync(join(src, file), "utf8").includes("process.env")).sort();
  assert.deepEqual(
    readers.filter((file) => file !== "config/read.ts"),
    ["cli/carillon.ts", "index.ts"],
  );
});

test("docs/errors.md lists every problem as the code has it", () => {
  const page = readFileSync(join(src, "..", "docs", "errors.md"), "utf8");
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \| (\d+) \| ([^|]+) \|/gm)].map(([, code, status, title]) => [
    code,
    Number(status),
    title?.trim(),
  ]);
  const known = Object.entries(PROBLEMS).map(([code, { status, title }]) => [code, status, title]);
  assert.deepEqual(listed.sort(), known.sort());
});
