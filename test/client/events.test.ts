// The client and the command line for whoever follows what happens.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CarillonError, createClient, type Fact } from "#client/client.ts";
import { commandLine } from "../support/command-line.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

const clientOf = (key: string, more: object = {}) => createClient({ url: service.url, key, ...more });
const makeKey = (tenant: string) => service.makeKey({ tenant, scopes: ["send", "read"] });
const send = async (key: string, request: object = {}): Promise<string> =>
  (await clientOf(key).send({ ...email(), ...request })).notificationId;
/** The next of a stream, or a test that does not hang. */
const next = async (facts: AsyncGenerator<Fact, void>): Promise<Fact> => {
  const { value, done } = await facts.next();
  return done || !value ? assert.fail("it ended") : value;
};

test("the client lists what happened, page after page", async () => {
  const key = await makeKey("lists");
  const { events } = clientOf(key);
  const ids = [await send(key), await send(key), await send(key)];
  const page = await until(async () => {
    const found = await events.list({ types: ["accepted", "sent"], limit: 2 });
    return found.data.length === 2 ? found : undefined;
  });
  const rest = await until(async () => {
    const found = await events.list({ after: page.next });
    return found.data.length === 1 ? found : undefined;
  });
  assert.deepEqual(
    [...page.data, ...rest.data].map(({ notificationId }) => notificationId),
    ids,
  );
  assert.deepEqual([page.isAtEnd, rest.isAtEnd], [false, true]);
  assert.equal((await events.list({ notification: ids[1] ?? "" })).data[0]?.notificationId, ids[1]);
  await assert.rejects(events.list({ after: "9:1:1:0" }), (error: CarillonError) => {
    assert.deepEqual([error.status, error.code], [410, "RESET"]);
    assert.match(error.next ?? "", /^\d+:0:0:0$/);
    return true;
  });
});

test("who follows is told as it happens, each once, through connections that are lost", async () => {
  const key = await makeKey("follows");
  const first = await send(key);
  let opened = 0;
  const resumedFrom: (string | undefined)[] = [];
  // Every other connection is lost after its first fact, the ones between are refused.
  const losing: typeof fetch = async (input, init) => {
    const headers = init?.headers as { [name: string]: string };
    if (headers.accept !== "text/event-stream") return fetch(input, init);
    opened++;
    if (opened % 2 === 0) return new Response("busy", { status: 503 });
    resumedFrom.push(headers["last-event-id"]);
    const answer = await fetch(input, init);
    const told = new TextDecoder();
    let isTold = false;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (isTold) return controller.error(new TypeError("terminated"));
        isTold = told.decode(chunk, { stream: true }).includes("event: fact");
        controller.enqueue(chunk);
      },
    });
    return new Response(answer.body?.pipeThrough(cut), answer);
  };
  const facts = clientOf(key, { fetch: losing, sleep: async () => {} }).events.follow({ after: "1:0:0:0" });
  const told = [(await next(facts)).notificationId];
  const sent = [first];
  for (let n = 0; n < 5; n++) {
    sent.push(await send(key));
    told.push((await next(facts)).notificationId);
  }
  assert.deepEqual(told, sent);
  assert.ok(opened > 3, "it came back");
  assert.equal(resumedFrom[0], undefined);
  assert.ok(resumedFrom.slice(1).every((position) => /^\d+:\d+:\d+:\d+$/.test(position ?? "")));
  await facts.return();
});

test("who leaves the loop, or aborts, lets the stream go", async () => {
  const key = await makeKey("leaves");
  const id = await send(key);
  const open = async () =>
    Number(/^carillon_event_streams (\d+)$/m.exec((await service.ask("GET", "/metrics")).body)?.[1]);
  const before = await open();
  for await (const fact of clientOf(key).events.follow({ since: "2020-01-01T00:00:00.000Z" })) {
    assert.equal(fact.notificationId, id);
    break;
  }
  await until(async () => ((await open()) === before ? true : undefined));
  const aborting = new AbortController();
  const facts = clientOf(key).events.follow({}, { signal: aborting.signal });
  const ended = facts.next();
  await until(async () => ((await open()) === before + 1 ? true : undefined));
  aborting.abort();
  assert.deepEqual(await ended, { value: undefined, done: true });
});

test("a reset, and a key that may not read, end it with the error", async () => {
  const key = await makeKey("reset");
  await assert.rejects(next(clientOf(key).events.follow({ after: "9:1:1:0" })), { code: "RESET", status: 410 });
  // Said while the stream was open.
  const told = new Response('id: 1:2:3:0\n\nevent: reset\ndata: {"next":"2:0:0:0"}\n\n');
  const fetching = async () => told;
  await assert.rejects(next(clientOf(key, { fetch: fetching }).events.follow()), { code: "RESET", next: "2:0:0:0" });
  const sender = await service.makeKey({ tenant: "reset", scopes: ["send"] });
  await assert.rejects(next(clientOf(sender).events.follow()), { status: 403 });
});

test("carillon events prints what happened, a line of JSON each, and follows", async () => {
  const key = await makeKey("cli");
  const later = { scheduledFor: new Date(Date.now() + 3_600_000).toISOString() };
  const [one, two] = [await send(key, later), await send(key, later)];
  await clientOf(key).cancel(one);
  const run = async (...args: string[]): Promise<Fact[]> => {
    const { stdout } = await commandLine({ url: service.url, key })("events", ...args);
    return stdout.split("\n").flatMap((line) => (line === "" ? [] : JSON.parse(line)));
  };
  const words = (facts: Fact[]) => facts.map(({ type, notificationId }) => `${type} ${notificationId}`);
  const all = await until(async () => {
    const found = await run();
    return found.length === 3 ? found : undefined;
  });
  assert.deepEqual(words(all), [`accepted ${one}`, `accepted ${two}`, `cancelled ${one}`]);
  assert.deepEqual(words(await run("--count", "1")), [`accepted ${one}`]);
  assert.deepEqual(words(await run("--types", "cancelled,sent")), [`cancelled ${one}`]);
  assert.deepEqual(words(await run("--after", all[0]?.position ?? "")), words(all.slice(1)));
  assert.deepEqual(words(await run("--notification", two)), [`accepted ${two}`]);
  await assert.rejects(run("--types", "nothing"), /some of accepted/);

  const told: string[] = [];
  const full = new Error("enough");
  const onText = (line: string) => {
    told.push(line);
    if (told.length === 4) throw full;
  };
  const line = commandLine({ url: service.url, key }, { onText });
  const following = line("events", "--follow", "--since", "2020-01-01T00:00:00.000Z");
  const three = await send(key, later);
  await assert.rejects(following, full);
  assert.deepEqual(words(told.map((line) => JSON.parse(line))), [...words(all), `accepted ${three}`]);
});
