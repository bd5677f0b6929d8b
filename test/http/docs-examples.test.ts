// The examples of /docs are true: curl and Python do what they say, and all of those for the client compile (test/client/consumer.test.ts).

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { BASE, type Examples, examplesOf, type Shown } from "#http/pages/examples.ts";
import { operationsOf } from "../support/api-document.ts";
import { type Service, startService } from "../support/service.ts";

const run = promisify(execFile);
let service: Service;
let examples: Map<string, Examples>;
before(async () => {
  service = await startService();
  const { body } = await service.ask("GET", "/openapi.json");
  examples = new Map(
    operationsOf(body).map(({ at, operation }) => {
      const [method = "", path = ""] = at.split(" ");
      return [at, examplesOf(method, path, operation as unknown as Shown)];
    }),
  );
});
after(() => service.stop());

/** What they answer: things that need nothing to be there, and then what these made. */
const RUN: [operation: string, status: number][] = [
  ["POST /v1/notifications", 202],
  ["POST /v1/notifications/batch", 200],
  ["GET /v1/notifications", 200],
  ["PUT /v1/schedules/:key", 200],
  ["POST /v1/schedules/:key/pause", 200],
  ["PUT /v1/templates/:id", 200],
  ["POST /v1/templates/:id/preview", 200],
  ["PUT /v1/suppressions/:address", 200],
  ["DELETE /v1/suppressions/:address", 204],
  ["POST /v1/channels/:name/pause", 200],
  ["POST /v1/dead-letters/requeue", 200],
  ["GET /health", 200],
];

const textOf = (operation: string, language: keyof Examples): string =>
  (examples.get(operation)?.[language] ?? "").replaceAll(BASE, service.url);
const env = () => ({ ...process.env, CARILLON_API_KEY: service.key });

test("curl does what the examples say", async () => {
  for (const [operation, status] of RUN) {
    const text = textOf(operation, "curl").replace(
      /^curl /,
      "curl --silent --show-error --write-out '\\n%{http_code}' ",
    );
    const { stdout } = await run("sh", ["-c", text], { env: env() });
    assert.equal(
      stdout.split("\n").at(-1),
      String(operation === "POST /v1/notifications" ? 202 : status),
      `${text}\n${stdout}`,
    );
  }
});

test("and so does Python", async (t) => {
  const isThere = await run("python3", ["--version"]).then(
    () => true,
    () => false,
  );
  if (!isThere) return t.skip("there is no python3");
  for (const [operation, status] of RUN) {
    const { stdout } = await run("python3", ["-c", textOf(operation, "python")], { env: env() });
    // The same request again is answered with the notification of then.
    assert.equal(
      stdout.split(" ")[0]?.trim(),
      String(operation === "POST /v1/notifications" ? 200 : status),
      operation,
    );
  }
});
