// The command line's part for callbacks: `carillon endpoint …` and `carillon callback …`.

import type { Client, Endpoint, EndpointRequest } from "#client/client.ts";

export const ENDPOINT_USAGE = `  carillon endpoint ls | show ID | add URL | set ID | delete ID | resume ID | rotate ID | test ID [--url URL]
    with add and set: [--events a,b] [--policy best_effort|aggressive|persistent] [--fifo notification|user|endpoint]
  carillon endpoint pause ID --reason TEXT
  carillon endpoint deliveries ID
  carillon endpoint replay ID --since INSTANT [--until INSTANT]
  carillon callback dead | requeue [--endpoint ID]`;

export type EndpointOptions = {
  reason: string;
  url?: string | undefined;
  events?: string | undefined;
  policy?: string | undefined;
  fifo?: string | undefined;
  endpoint?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
};
type Said = Pick<EndpointRequest, "events" | "policy" | "fifo">;
type Print = (line: string) => void;
type Command = (client: Client, id: string, print: Print, options: EndpointOptions) => Promise<void>;

export const ENDPOINT_COMMANDS: { [command: string]: Command } = {
  async "endpoint ls"(client, _id, print) {
    for (const { id, state, policy, url = "(as requests say)" } of (await client.endpoints.list()).data)
      print([id, state, policy, url].join("  "));
  },
  async "endpoint show"(client, id, print) {
    show(await client.endpoints.get(id), print);
  },
  async "endpoint add"(client, url, print, options) {
    const { secret, ...endpoint } = await client.endpoints.create({ url, ...saidOf(options) });
    show(endpoint, print);
    print(`secret, shown only this once: ${secret}`);
  },
  async "endpoint set"(client, id, print, options) {
    show(await client.endpoints.change(id, { ...saidOf(options), ...(options.url && { url: options.url }) }), print);
  },
  async "endpoint delete"(client, id, print) {
    await client.endpoints.delete(id);
    print(`${id} is deleted`);
  },
  async "endpoint pause"(client, id, print, { reason }) {
    await client.endpoints.pause(id, reason);
    print(`${id} is paused`);
  },
  async "endpoint resume"(client, id, print) {
    await client.endpoints.resume(id);
    print(`${id} goes on`);
  },
  async "endpoint rotate"(client, id, print) {
    const { secret, publicKey, previousSecretUntil } = await client.endpoints.rotate(id);
    print(`secret, shown only this once: ${secret}`);
    print(`public key: ${publicKey}`);
    print(`the ones before sign beside them until ${previousSecretUntil}`);
  },
  async "endpoint test"(client, id, print, { url }) {
    const { delivered, status, error, latencyMs, body = "" } = await client.endpoints.test(id, url ? { url } : {});
    print(`${delivered ? "delivered" : "NOT delivered"}: ${error ?? status} in ${latencyMs} ms`);
    if (body !== "") print(body);
    if (!delivered) process.exitCode = 1;
  },
  async "endpoint replay"(client, id, print, { since = "", until }) {
    let total = 0;
    let cursor: string | null = null;
    do {
      const which = { since, ...(until && { until }), limit: 1000, ...(cursor && { cursor }) };
      const done: { replayed: number; nextCursor: string | null } = await client.endpoints.replay(id, which);
      total += done.replayed;
      cursor = done.nextCursor;
    } while (cursor !== null);
    print(`${total} are sent again`);
  },
  async "endpoint deliveries"(client, id, print) {
    for (const { createdAt, status, type, webhookId, tries } of (await client.endpoints.deliveries(id)).data) {
      const { number = 0, answer, error } = tries.at(-1) ?? {};
      print([createdAt, status, type, webhookId, `tries ${number}`, error ?? answer?.status ?? ""].join("  "));
    }
  },
  async "callback dead"(client, _id, print) {
    for (const { failedAt, endpointId, type, attempts, error = "" } of (await client.callbackDeadLetters.list()).data)
      print([failedAt, endpointId, type, `tries ${attempts}`, error].join("  "));
  },
  async "callback requeue"(client, _id, print, { endpoint }) {
    const filter = endpoint ? { endpoint } : {};
    let total = 0;
    let cursor: string | null = null;
    do {
      const done: { requeued: number; nextCursor: string | null } = await client.callbackDeadLetters.requeue({
        filter,
        ...(cursor && { cursor }),
      });
      total += done.requeued;
      cursor = done.nextCursor;
    } while (cursor !== null);
    print(`${total} are sent again`);
  },
};

/** Those that are about one of them. */
export const WITH_ENDPOINT = Object.keys(ENDPOINT_COMMANDS).filter(
  (command) => command.startsWith("endpoint ") && command !== "endpoint ls",
);

/** Words that the server does not know it refuses itself. */
const saidOf = ({ events, policy, fifo }: EndpointOptions): Said =>
  ({ ...(events && { events: events.split(",") }), ...(policy && { policy }), ...(fifo && { fifo }) }) as Said;

function show({ id, url, state, reason, policy, events, fifo, rate, publicKey }: Endpoint, print: Print): void {
  print(`${id}  ${url ?? "(as requests say)"}`);
  print(`  ${state}${reason ? `: ${reason}` : ""}`);
  print(
    `  policy ${policy}${fifo ? `, in order by ${fifo}` : ""}${rate ? `, at most ${rate.most} a ${rate.per}` : ""}`,
  );
  print(`  events ${events?.join(" ") ?? "all"}`);
  print(`  public key ${publicKey}`);
}
