// What every provider that speaks HTTP must do. A provider's test file calls this with a way to open it against a
// stand-in server and with captured answers of the real one.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Message, Provider } from "#channels/channel.ts";
import type { Category, Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Answer, Received, Said, StandIn } from "../support/scripted.ts";
import { startStandIn } from "../support/stand-in.ts";

export type Expected = {
  kind: Exclude<Reply["kind"], "accepted">;
  code?: string;
  category?: Category;
  /** Left out, there must be none. */
  retryAfterMs?: number;
};

export type ProviderSetup = {
  /** Opens the provider so that all it asks goes to this URL, which has no slash at the end. */
  open(url: string): Provider;
  /** A valid message; `url` for those whose recipient is a URL. */
  message(url: string): Message;
  /** The provider's answer to a message it takes. */
  success: Said | ((received: Received) => Said);
  /** What the reply to `success` says, where the provider gives receipts. */
  receipt?: string;
  /** What is sent can be read by the recipient alone. */
  isEncrypted?: true;
  /** What a 500, 502 or 504 amounts to, if not `ambiguous`: it is the receiver's own word, and it can tell a copy. */
  failed?: "unavailable";
  /** Looks at the request that was sent. */
  inspect?(received: Received): void;
  /** The provider's own errors: answers captured from the real one, and what they must amount to. */
  errors: [title: string, answer: Said, expected: Expected][];
  /** Answers what the provider asks before it sends, such as a token; undefined for the send itself. */
  beforehand?(received: Received): Said | undefined;
  /** What validate() must refuse, and the path of the fault. */
  refuses?: [title: string, request: NotificationRequest, path: string][];
  check?: { healthy: Said; unhealthy: Said };
  /** Must appear in no reason: keys, tokens, secret URLs. */
  secrets: string[];
  /** For a provider that does not speak HTTP/1.1. */
  serve?(): Promise<StandIn>;
};

const MAX_REASON = 1000;
const FLOOD = 64 * 1024 * 1024;

export function providerSuite(name: string, setup: ProviderSetup): void {
  const { open, success, secrets, serve = startStandIn, beforehand = () => undefined, failed = "ambiguous" } = setup;

  type Opened = {
    standIn: StandIn;
    provider: Provider;
    message: Message;
    /** How sends are answered from now on. */
    answer(answer: Answer | ((received: Received) => Answer)): void;
    /** The requests that were sends. */
    sends(): Received[];
    send(signal?: AbortSignal, timeoutMs?: number): Promise<Reply>;
  };
  async function opened(t: TestContext, at?: string): Promise<Opened> {
    const standIn = await serve();
    t.after(() => standIn.close());
    const url = at ?? standIn.url;
    const provider = open(url);
    t.after(() => provider.close?.());
    const message = setup.message(url);
    const answer: Opened["answer"] = (script) =>
      standIn.answer((received) => beforehand(received) ?? (typeof script === "function" ? script(received) : script));
    answer(success);
    return {
      standIn,
      provider,
      message,
      answer,
      sends: () => standIn.received.filter((one) => beforehand(one) === undefined),
      // Awaited in an async function, so that a throw is a rejection like any other.
      send: async (signal = AbortSignal.timeout(20_000), timeoutMs = 20_000) =>
        sound(await provider.send(message, { idempotencyKey: "key-1", timeoutMs, signal })),
    };
  }

  /** Holds for every reply, whatever was asked. */
  function sound(reply: Reply): Reply {
    if (reply.kind === "accepted") return reply;
    assertSound(reply.reason);
    if (reply.code !== undefined) assertSound(reply.code);
    return reply;
  }
  function assertSound(text: string): void {
    assert.ok(text.length > 0, "it gives a reason");
    assert.ok(text.length <= MAX_REASON, `${text.length} characters are too many`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    assert.doesNotMatch(text, /[\u0000-\u001f\u007f]/, "it is one line");
    for (const secret of secrets) assert.ok(!text.includes(secret), `a secret stands in: ${text}`);
  }

  test(`${name}: what it takes is accepted`, async (t) => {
    const { send, sends } = await opened(t);
    const reply = await send();
    assert.equal(reply.kind, "accepted", JSON.stringify(reply));
    assert.equal(reply.receipt, setup.receipt);
    assert.equal(sends().length, 1);
    const [sent] = sends();
    assert.ok(sent);
    setup.inspect?.(sent);
  });

  test(`${name}: what it says it would send is what it sends`, async (t) => {
    const { provider, message, send, sends } = await opened(t);
    const encoded = await provider.encode?.(message);
    assert.ok(encoded && "body" in encoded, JSON.stringify(encoded));
    await send();
    const [sent] = sends();
    assert.ok(sent);
    if (!setup.isEncrypted) assert.equal(encoded.body, sent.body);
  });

  for (const [title, answer, expected] of setup.errors) {
    test(`${name}: ${title} is ${expected.kind}`, async (t) => {
      const opening = await opened(t);
      opening.answer(answer);
      const reply = await opening.send();
      const { kind, code, category, retryAfterMs } = { code: undefined, category: undefined, ...retryOf(reply) };
      assert.equal(kind, expected.kind, JSON.stringify(reply));
      if ("code" in expected) assert.equal(code, expected.code);
      if ("category" in expected) assert.equal(category, expected.category);
      assert.equal(retryAfterMs, expected.retryAfterMs);
    });
  }

  for (const [status, kinds] of [
    [400, ["rejected"]],
    [429, ["limited"]],
    [500, [failed]],
    [502, [failed]],
    [503, ["unavailable", "ambiguous"]],
    [504, [failed]],
  ] as const) {
    test(`${name}: a ${status} that says nothing more is ${kinds.join(" or ")}`, async (t) => {
      const { answer, send } = await opened(t);
      answer({ status });
      const reply = await send();
      assert.ok(
        kinds.some((kind) => kind === reply.kind),
        JSON.stringify(reply),
      );
    });
  }

  test(`${name}: a redirect is not followed and is no success`, async (t) => {
    const { standIn, answer, send, sends } = await opened(t);
    for (const status of [301, 302, 303, 307, 308]) {
      answer({ status, headers: { location: `${standIn.url}/elsewhere` } });
      assert.notEqual((await send()).kind, "accepted");
    }
    assert.equal(sends().length, 5);
    assert.ok(!standIn.received.some(({ path }) => path === "/elsewhere"));
  });

  test(`${name}: a refused connection is unavailable`, async (t) => {
    const { standIn, send } = await opened(t);
    await standIn.close();
    assert.equal((await send()).kind, "unavailable");
  });

  test(`${name}: a host that does not resolve is unavailable`, async (t) => {
    const { send } = await opened(t, "http://nowhere.invalid");
    assert.equal((await send()).kind, "unavailable");
  });

  test(`${name}: a connection lost after the request was read is ambiguous`, async (t) => {
    const { answer, send, sends } = await opened(t);
    answer("reset");
    assert.equal((await send()).kind, "ambiguous");
    assert.equal(sends().length, 1, "it is not sent again on its own");
  });

  test(`${name}: an answer that breaks off is accepted or ambiguous`, async (t) => {
    const { answer, send } = await opened(t);
    answer("break");
    assertMayBeSent(await send());
  });

  test(`${name}: without an answer it is ambiguous once the signal aborts`, async (t) => {
    const { standIn, answer, send } = await opened(t);
    await send();
    const before = standIn.received.length;
    answer("hang");
    const stop = new AbortController();
    const sending = send(stop.signal);
    await standIn.arrived(before + 1);
    stop.abort();
    const reply = await sending;
    assert.equal(reply.kind, "ambiguous", JSON.stringify(reply));
  });

  test(`${name}: without an answer it is ambiguous when its time is up`, async (t) => {
    const { answer, send } = await opened(t);
    await send();
    answer("hang");
    const reply = await send(new AbortController().signal, 100);
    assert.equal(reply.kind, "ambiguous", JSON.stringify(reply));
  });

  test(`${name}: once the signal is aborted nothing is sent`, async (t) => {
    const { standIn, send } = await opened(t);
    assert.equal((await send(AbortSignal.abort())).kind, "unavailable");
    assert.equal((await send()).kind, "accepted");
    const isOneSend = standIn.received.filter((one) => beforehand(one) === undefined).length === 1;
    assert.ok(isOneSend, "only the second went out");
  });

  for (const [title, body] of [
    ["an empty body", ""],
    ["a body that is no JSON", "<html>\n<h1>It works!</h1>"],
    ["JSON that is null", "null"],
    ["JSON of another shape", '[{"name":7,"ok":"yes"}]'],
    ["half a body of JSON", '{"ok":tr'],
  ] as const) {
    test(`${name}: a 200 with ${title} is accepted or ambiguous`, async (t) => {
      const { answer, send } = await opened(t);
      answer({ status: 200, body });
      assertMayBeSent(await send());
    });
  }

  for (const [title, body] of [
    ["no JSON", "<html>\n<h1>Bad request</h1>"],
    ["null", "null"],
    ["JSON of another shape", '{"error":[],"errors":{"0":null},"code":{},"message":7}'],
  ] as const) {
    test(`${name}: a 400 with a body that is ${title} is rejected`, async (t) => {
      const { answer, send } = await opened(t);
      answer({ status: 400, body });
      assert.equal((await send()).kind, "rejected");
    });
  }

  test(`${name}: an answer without end is cut off`, async (t) => {
    const { standIn, answer, send } = await opened(t);
    answer({ flood: FLOOD });
    assertMayBeSent(await send());
    await standIn.forsaken();
    assert.ok(standIn.flooded() < FLOOD / 2, `it took ${standIn.flooded()} bytes`);
  });

  test(`${name}: sends that follow each other share connections`, async (t) => {
    const { standIn, send } = await opened(t);
    for (let n = 0; n < 20; n++) assert.equal((await send()).kind, "accepted");
    // Two, as the second send may begin before the pool has noted that the first is over.
    assert.ok(standIn.connections().ever <= 2, `${standIn.connections().ever} connections`);
  });

  test(`${name}: a connection that the server closed while idle costs no send`, async (t) => {
    const { standIn, send } = await opened(t);
    assert.equal((await send()).kind, "accepted");
    await standIn.dropConnections();
    assert.equal((await send()).kind, "accepted");
  });

  // As a proxy in between does when it explains what it did not like.
  test(`${name}: an error page that shows the request does not bring secrets into the reason`, async (t) => {
    const { answer, send } = await opened(t);
    for (const status of [400, 403, 500]) {
      answer(({ path, headers }) => {
        const shown = [path, ...Object.entries(headers).flat(), ...secrets].join("\n");
        return { status, body: `<pre>${shown}</pre>${"x".repeat(5000)}` };
      });
      assert.notEqual((await send()).kind, "accepted");
    }
  });

  test(`${name}: says what it can do`, async (t) => {
    const { provider, message } = await opened(t);
    const { batch, attachments, tracking, reconciles, platforms: _, ...more } = provider.capabilities;
    assert.ok(provider.name.length > 0);
    assert.ok(provider.channels.includes(message.request.channel));
    assert.ok(Number.isInteger(batch) && batch >= 1);
    for (const fact of [attachments, tracking, reconciles]) assert.equal(typeof fact, "boolean");
    for (const figure of Object.values(more)) assert.ok(figure >= 0);
    assert.equal(reconciles, provider.reconcile !== undefined);
    if (provider.report) assert.equal(tracking, true);
  });

  test(`${name}: finds no fault in a valid message`, async (t) => {
    const { provider, message } = await opened(t);
    assert.deepEqual(provider.validate?.(message.request) ?? [], []);
  });

  for (const [title, request, path] of setup.refuses ?? []) {
    test(`${name}: refuses ${title}`, async (t) => {
      const { provider } = await opened(t);
      const faults = provider.validate?.(request) ?? [];
      assert.ok(
        faults.some((fault) => fault.path === path && fault.message.length > 0),
        JSON.stringify(faults),
      );
    });
  }

  const { check } = setup;
  if (check) {
    test(`${name}: a check tells a healthy provider from one that refuses us or is not there`, async (t) => {
      const { standIn, provider, answer } = await opened(t);
      const health = async () => {
        const found = await provider.check?.(AbortSignal.timeout(20_000));
        assert.ok(found);
        assertSound(found.detail);
        return found.healthy;
      };
      answer(check.healthy);
      assert.equal(await health(), true);
      answer(check.unhealthy);
      assert.equal(await health(), false);
      answer("reset");
      assert.equal(await health(), false);
      await standIn.close();
      assert.equal(await health(), false);
    });
  }

  test(`${name}: when closed it holds no connection and no timer`, async (t) => {
    const before = timers();
    const { standIn, provider, answer, send } = await opened(t);
    answer(success);
    await send();
    await provider.close?.();
    await standIn.forsaken();
    assert.ok(timers() <= before, "a timer would keep the process");
  });
}

const retryOf = (reply: Reply) => ({ retryAfterMs: undefined, ...reply });

/** Only those that keep the process alive. */
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

/** A provider that says 200 may have acted: to call it not sent would send it twice without a word. */
function assertMayBeSent(reply: Reply): void {
  assert.ok(reply.kind === "accepted" || reply.kind === "ambiguous", JSON.stringify(reply));
}
