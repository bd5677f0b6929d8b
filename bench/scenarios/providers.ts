// One worker against a provider that takes 20 ms for every message: how near it comes to its concurrency divided by that
// latency, over HTTP/1.1 and over APNs' HTTP/2. And what a template costs.

import { generateKeyPairSync } from "node:crypto";
import { type ClientHttp2Session, connect } from "node:http2";
import { fileURLToPath } from "node:url";
import { Agent, request } from "undici";
import { createCarillon } from "../../src/index.ts";
import { createRenderer } from "../../src/templates/renderer.ts";
import { carillonAdapter, clearCarillon } from "../adapters/carillon.ts";
import { freePort, startProgram, whenReady } from "../program.ts";
import type { Case, Figures, Scenario, World } from "../scenario.ts";
import { settleStore } from "../sql.ts";

const LATENCY_MS = 20;
const CONCURRENCY = 100;
const JOBS = 30_000;
const BATCH = 1000;
const RENDERS = 5_000;
const ALONE = 300;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Counted = { answered: number; connections: number };

async function startSlowProvider() {
  const script = fileURLToPath(new URL("../slow-provider.ts", import.meta.url));
  const program = await startProgram(process.execPath, [script, String(LATENCY_MS)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const next = <Message>() =>
    new Promise<Message>((resolve) => program.child.once("message", (m) => resolve(m as Message)));
  const ports = await whenReady(program, "the slow provider", next<{ http1: number; http2: number }>());
  const report = async (): Promise<Counted> => {
    program.child.send("report");
    return next<Counted>();
  };
  return { program, ports, report };
}

const pem = () =>
  generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();

const SUBJECTS = {
  "SendGrid over HTTP/1.1": {
    channel: "email",
    settings: (ports: { http1: number }) => ({
      type: "sendgrid",
      apiKey: "SG.x",
      from: "bell@example.com",
      apiUrl: `http://127.0.0.1:${ports.http1}`,
    }),
    request: {
      channel: "email",
      recipient: { email: "ada@example.com" },
      content: { subject: "s", textBody: "t".repeat(200) },
    },
  },
  "APNs over HTTP/2": {
    channel: "push",
    settings: (ports: { http2: number }) => ({
      type: "apns",
      teamId: "TEAM",
      keyId: "KEY",
      privateKey: pem(),
      topic: "com.example.app",
      apiUrl: `http://127.0.0.1:${ports.http2}`,
    }),
    request: {
      channel: "push",
      recipient: { deviceTokens: ["a".repeat(64)] },
      content: { title: "s", body: "t".repeat(200) },
    },
  },
} as const;

async function startService(world: World, channel: string, settings: object) {
  const port = await freePort();
  const script = fileURLToPath(new URL("../../src/cli/carillon.ts", import.meta.url));
  const program = await startProgram(process.execPath, [script, "start"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      DATABASE_URL: world.databaseUrl,
      PORT: String(port),
      CARILLON_API_KEY: "benchmark-key",
      CARILLON_LOG_LEVEL: "error",
      CARILLON_CONCURRENCY: String(CONCURRENCY),
      CARILLON_PROVIDERS: JSON.stringify({ slow: settings }),
      CARILLON_ROUTES: JSON.stringify({ [channel]: "slow" }),
    },
  });
  const listening = new Promise<void>((resolve) => {
    program.child.stdout?.on("data", (text) => {
      if (String(text).includes("listening")) resolve();
    });
  });
  await whenReady(program, "carillon", listening);
  return program;
}

async function measure(report: () => Promise<Counted>): Promise<Figures> {
  // The clock starts with a tenth answered: neither start-up nor the first connections count.
  let first = await report();
  while (first.answered < JOBS / 10) {
    await pause(5);
    first = await report();
  }
  const from = performance.now();
  let last = first;
  while (last.answered < JOBS * 0.95) {
    await pause(5);
    last = await report();
  }
  const perSecond = ((last.answered - first.answered) * 1000) / (performance.now() - from);
  return { perSecond, connections: last.connections };
}

type Bare = { ask(): Promise<void>; close(): Promise<void> };

/** What the wire and the provider allow: the same requests with nothing around them. */
const bareCase = (subject: string, open: (ports: { http1: number; http2: number }) => Promise<Bare>): Case => ({
  variant: VARIANT,
  subject,
  settings: `${CONCURRENCY} requests under way`,
  async prepare() {
    const { program, ports, report } = await startSlowProvider();
    const bare = await open(ports);
    return {
      processes: { provider: program.pid },
      async measure() {
        let asked = 0;
        const line = async () => {
          while (asked++ < JOBS) await bare.ask();
        };
        const lines = Promise.all(Array.from({ length: CONCURRENCY }, line));
        const figures = await measure(report);
        await lines;
        return figures;
      },
      async finish() {
        await bare.close();
        await program.stop();
      },
    };
  },
});

const BARE_BODY = "t".repeat(300);
const bareRequest = (session: ClientHttp2Session): Promise<void> =>
  new Promise((resolve) => {
    const stream = session.request({ ":method": "POST", ":path": "/3/device/x" });
    stream.on("data", () => {}).on("close", () => resolve());
    stream.end(BARE_BODY);
  });

async function openHttp1(ports: { http1: number }): Promise<Bare> {
  const agent = new Agent({ connections: CONCURRENCY });
  const url = `http://127.0.0.1:${ports.http1}/v3/mail/send`;
  return {
    ask: async () => {
      const { body } = await request(url, { dispatcher: agent, method: "POST", body: BARE_BODY });
      await body.dump();
    },
    close: () => agent.close(),
  };
}

const TEMPLATES: { readonly [subject: string]: { [field: string]: string } } = {
  "one line of text": { body: "Your code is {{ code }}" },
  "subject, text and HTML with a loop": {
    subject: "Hello {{ name }}",
    textBody: "{% for i in items %}- {{ i }}\n{% endfor %}",
    htmlBody: "<ul>{% for i in items %}<li>{{ i }}</li>{% endfor %}</ul>",
  },
};

const ARITHMETIC = "concurrency / latency";
const VARIANT = `${CONCURRENCY} at once, ${LATENCY_MS} ms each`;

export const providers: Scenario = {
  summary: "one worker against a provider that takes 20 ms; the cost of a template",
  parts: {
    wire: {
      title: `${JOBS.toLocaleString("en")} messages to a provider that takes ${LATENCY_MS} ms, ${CONCURRENCY} at once`,
      figure: { name: "perSecond", unit: "/s" },
      // Latency is what one request alone takes: a timer of 20 ms is a little late, and there is the wire.
      targets: Object.keys(SUBJECTS).map((subject) => ({
        variant: VARIANT,
        subject,
        against: ARITHMETIC,
        atLeast: 0.9,
      })),
      cases: (world) => [
        ...Object.entries(SUBJECTS).map(([subject, { channel, settings, request }]) => ({
          variant: VARIANT,
          subject,
          settings: `defaults but concurrency ${CONCURRENCY}`,
          async prepare() {
            await clearCarillon(world.databaseUrl);
            const sender = createCarillon({ databaseUrl: world.databaseUrl });
            for (let n = 0; n < JOBS; n += BATCH)
              await sender.sendBatch(Array.from({ length: BATCH }, () => request as never));
            await sender.close();
            await settleStore(world.databaseUrl);
            const { program, ports, report } = await startSlowProvider();
            const service = await startService(world, channel, settings(ports));
            return {
              processes: { provider: program.pid, worker: service.pid },
              measure: () => measure(report),
              async finish() {
                await service.stop();
                await program.stop();
                await carillonAdapter(world.databaseUrl).clear();
              },
            };
          },
        })),
        bareCase("bare HTTP/1.1 client", openHttp1),
        bareCase("bare HTTP/2 client", async (ports) => {
          const session = connect(`http://127.0.0.1:${ports.http2}`);
          await new Promise((resolve) => session.once("remoteSettings", resolve));
          return { ask: () => bareRequest(session), close: async () => session.close() };
        }),
        {
          variant: VARIANT,
          subject: ARITHMETIC,
          settings: `latency: the mean of ${ALONE} requests, one after the other`,
          async prepare() {
            const { program, ports } = await startSlowProvider();
            const bare = await openHttp1(ports);
            return {
              processes: { provider: program.pid },
              async measure() {
                const from = performance.now();
                for (let n = 0; n < ALONE; n++) await bare.ask();
                const latencyMs = (performance.now() - from) / ALONE;
                return { perSecond: (CONCURRENCY * 1000) / latencyMs, latencyMs };
              },
              async finish() {
                await bare.close();
                await program.stop();
              },
            };
          },
        },
      ],
    },
    templates: {
      title: `Microseconds of wall time to render a message, ${RENDERS.toLocaleString("en")} messages one after the other`,
      figure: { name: "microseconds", unit: " µs" },
      targets: [],
      cases: () =>
        Object.entries(TEMPLATES).map(([subject, fields]) => ({
          variant: "cached",
          subject,
          settings: "one thread",
          async prepare() {
            const renderer = createRenderer({ threads: 1 });
            const source = { tenant: 1, fields, partials: {}, locale: "default", strict: false };
            const variables = { code: "1234", name: "Ada", items: ["a", "b", "c", "d", "e"] };
            for (let n = 0; n < 200; n++) await renderer.render(source, variables);
            return {
              async measure() {
                const from = performance.now();
                for (let n = 0; n < RENDERS; n++) await renderer.render(source, variables);
                return { microseconds: ((performance.now() - from) * 1000) / RENDERS };
              },
              finish: () => renderer.close(),
            };
          },
        })),
    },
  },
};
