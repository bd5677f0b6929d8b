// How the browser's side reads a stream and comes back to it, without a browser: time and chance are held.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createEventReader, type StreamEvent } from "../../web/inbox/event-stream.ts";
import { type Connection, follow } from "../../web/inbox/follow.ts";
import { safeLink } from "../../web/inbox/safe-link.ts";

function readAll(...chunks: string[]): { events: StreamEvent[]; retries: number[] } {
  const events: StreamEvent[] = [];
  const retries: number[] = [];
  const reader = createEventReader(
    (event) => events.push(event),
    (retryMs) => retries.push(retryMs),
  );
  for (const chunk of chunks) reader.feed(chunk);
  return { events, retries };
}

const WIRE = ': hello\nretry: 300\n\nid: 1:7\nevent: notification\ndata: {"a":\ndata:1}\n\nevent: unread\ndata: 3\n\n';
const MEANT: StreamEvent[] = [
  { name: "notification", data: '{"a":\n1}', id: "1:7" },
  { name: "unread", data: "3", id: undefined },
];

test("events are read whatever ends their lines and wherever the chunks are cut", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const wire = WIRE.replaceAll("\n", end);
    // A lone carriage return may be half of a line end: the last one waits for what follows.
    const whole = `${wire}:`;
    for (let cut = 0; cut <= whole.length; cut++) {
      const { events, retries } = readAll(whole.slice(0, cut), whole.slice(cut));
      assert.deepEqual(events, MEANT);
      assert.deepEqual(retries, [300]);
    }
  }
});

test("an id without data moves the place, and what is not finished is not told", () => {
  assert.deepEqual(readAll("id: 1:9\n\n").events, [{ name: "message", data: "", id: "1:9" }]);
  assert.deepEqual(readAll("event: notification\ndata: {}\n").events, []);
  assert.deepEqual(readAll("retry: soon\nunknown: x\ndata\n\n").events, [{ name: "message", data: "", id: undefined }]);
});

/** Follows with these answers in turn, and tells after which wait each was asked for. */
async function waitsWith(answers: (Response | Error)[], hurryAt?: number): Promise<number[]> {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waits: number[] = [];
  const stopping = new AbortController();
  const hurry = new EventTarget();
  let waited = 0;
  const following = follow({
    async open() {
      waits.push(waited);
      waited = 0;
      const answer = answers[waits.length - 1];
      if (answer === undefined) stopping.abort();
      if (!(answer instanceof Response)) throw answer ?? new Error("over");
      return answer;
    },
    resume: () => undefined,
    onEvent: () => {},
    onConnection: () => {},
    signal: stopping.signal,
    hurry,
    random: () => 0,
  });
  let isOver = false;
  following.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
    if (waited === hurryAt) hurry.dispatchEvent(new Event("hurry"));
    else {
      mock.timers.tick(100);
      waited += 100;
    }
  }
  mock.timers.reset();
  return waits;
}
const lost = () => new Error("no network");

test("each failure doubles the wait, up to half a minute", async () => {
  const waits = await waitsWith([lost(), lost(), lost(), lost(), lost(), lost(), lost()]);
  assert.deepEqual(waits.slice(1), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test("retry: sets the first wait, and Retry-After is waited for", async () => {
  const waits = await waitsWith([
    new Response("retry: 300\n\n"),
    lost(),
    new Response(null, { status: 503, headers: { "retry-after": "7" } }),
  ]);
  assert.deepEqual(waits.slice(1), [300, 600, 7_000]);
});

test("a wait is cut short when somebody presses the button", async () => {
  const waits = await waitsWith([lost(), lost(), lost()], 500);
  assert.deepEqual(waits.slice(1), [500, 500, 500]);
});

test("a refusal ends it, and is told apart from an outage", async () => {
  for (const status of [401, 403]) {
    const told: Connection[] = [];
    await follow({
      open: async () => new Response(null, { status }),
      resume: () => undefined,
      onEvent: () => {},
      onConnection: (connection) => told.push(connection),
      signal: new AbortController().signal,
      hurry: new EventTarget(),
    });
    assert.deepEqual(told, ["connecting", "unauthorized"]);
  }
});

test("links lead to http, https and into the page's own site, and nowhere else", () => {
  const page = "https://app.example.com/here/";
  const led = (link: unknown) => safeLink(link, page)?.href;
  assert.equal(led("/orders/17"), "https://app.example.com/orders/17");
  assert.equal(led("there?a#b"), "https://app.example.com/here/there?a#b");
  assert.equal(led("HTTPS://example.com"), "https://example.com/");
  for (const link of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " \u0001java\tscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:https://app.example.com/x",
    "file:///etc/passwd",
    "mailto:a@example.com",
    "https://",
    "",
    " ",
    undefined,
    null,
    7,
    {},
  ]) {
    assert.equal(led(link), undefined, String(link));
  }
});
