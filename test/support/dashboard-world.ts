// A Carillon in which something has happened: for whoever looks at the dashboard.

import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Config } from "#config/read.ts";
import { startReceiver } from "./callback-receiver.ts";
import { type Service, startService } from "./service.ts";
import { until } from "./until.ts";

export const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

const BAD = /refused/;
/** Whatever is sent there fails for good. */
export const NO_PHONE = "+33699999999";
const REFUSING = "/refusing";
const providers: Config["providers"] = {
  mail: {
    type: "test",
    decide: ({ request }) => (BAD.test(request.recipient?.email ?? "") ? "dead" : undefined),
  },
  texts: {
    type: "test",
    decide: ({ request }) => (request.recipient?.phone === NO_PHONE ? "dead" : undefined),
  },
  hooks: { type: "webhook" },
  bell: { type: "inbox" },
};
const routes: Config["routes"] = {
  ...{ email: "mail", sms: "texts", inbox: "bell", push: "texts" },
  ...{ slack: "texts", webhook: "hooks", console: "texts", file: "texts" },
};

export type World = {
  service: Service;
  /** A server elsewhere, and the paths that it was asked for. */
  elsewhere: { url: string; asked: string[] };
  /** A webhook that refuses, with a stranger's words. */
  refusing: string;
  /** Notifications of each kind. */
  ids: { sent: string; failed: string; pending: string; hostile: string };
  stop(): Promise<void>;
};

export async function startWorld(): Promise<World> {
  const service = await startService({
    roles: ["api", "worker", "scheduler", "keeper", "stream"],
    allowAddresses: ["127.0.0.1"],
    secretKeys: [randomBytes(32)] as never,
    ...{ providers, routes },
  });
  const receiver = await startReceiver(({ path }, response) =>
    path === REFUSING ? response.writeHead(410).end(`Gone: ${HOSTILE}`) : response.writeHead(204).end(),
  );
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const elsewhere = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await service.ask(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const send = async (body: object): Promise<string> => (await ask("POST", "/v1/notifications", body)).notificationId;
  await ask("POST", "/v1/endpoints", { url: `${receiver.url}/hook` });

  for (const text of ["Welcome, {{ name }}", "Hello {{ name }}, welcome to {{ place }}"]) {
    const content = { subject: text, htmlBody: `<h1>${text}</h1><p>We are glad.</p>`, textBody: text };
    await ask("PUT", "/v1/templates/welcome", { channel: "email", name: "Welcome", content });
  }
  const to = (email: string, userId = "ada") => ({ channel: "email", recipient: { email, userId } });
  const variables = { name: "Ada", place: "the house" };
  const notifications = Array.from({ length: 60 }, (_, n) => ({
    ...to(`reader${n}@example.com`, `reader ${n}`),
    content: { subject: `Your order ${n} has shipped`, textBody: "On Tuesday." },
    priority: ["urgent", "high", "normal", "low"][n % 4],
  }));
  await ask("POST", "/v1/notifications/batch", { notifications });
  const ids = {
    sent: await send({ ...to("ada@example.com"), content: { templateId: "welcome", variables } }),
    failed: await send({ ...to("refused@example.com"), content: { subject: "Your invoice", textBody: "Attached." } }),
    pending: await send({
      ...{ channel: "sms", recipient: { phone: "+33612345678", userId: "ada" } },
      ...{ content: { body: "See you next year" }, scheduledFor: "2099-01-01T09:00:00Z" },
    }),
    hostile: await send({
      ...to("ada@example.com"),
      content: {
        subject: HOSTILE,
        htmlBody: `<h1>News</h1>${HOSTILE}<img id="far" src="${elsewhere.url}/pixel.png" alt="a picture">
          <a href="javascript:document.title='owned'">bad link</a> <a href="https://example.com/offer">good link</a>
          <meta http-equiv="refresh" content="0; url=${elsewhere.url}/away"><form action="${elsewhere.url}/stolen"><button>Give</button></form>`,
        textBody: "News",
      },
    }),
  };
  await send({
    channel: "inbox",
    recipient: { userId: "ada" },
    content: { title: HOSTILE, body: "Your order is there" },
  });
  await ask("PUT", "/v1/users/ada/devices/phone-1", { platform: "ios" });
  await ask("PUT", "/v1/suppressions/nobody@example.com", { reason: "asked by phone" });
  const notification = { channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "Good morning" } };
  await ask("PUT", "/v1/schedules/morning", { cron: "0 9 * * *", timezone: "Europe/Paris", notification });
  await ask("PUT", "/v1/reminders/dentist", { at: "2099-05-01T10:00:00Z", before: ["P1D", "PT1H"], notification });
  const ended = async (id: string) =>
    !["queued", "processing"].includes((await ask("GET", `/v1/notifications/${id}`)).status);
  await until(async () =>
    (await ended(ids.sent)) && (await ended(ids.failed)) && (await ended(ids.hostile)) ? true : undefined,
  );
  return {
    ...{ service, elsewhere, ids, refusing: `${receiver.url}${REFUSING}` },
    async stop() {
      await service.stop();
      receiver.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
