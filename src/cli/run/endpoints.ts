// The command line's part for callbacks: `carillon endpoint …` and `carillon callback …`.

import type { Endpoint, EndpointRequest } from "#client/client.ts";
import { type Call, EXIT, type Run } from "../command.ts";
import { definedOf, listed, said } from "./lines.ts";

type Said = Pick<EndpointRequest, "events" | "policy" | "fifo">;

export const listEndpoints: Run = async (_call, world) => {
  const { data } = await (await world.client()).endpoints.list();
  return listed(data, ({ id, state, policy, url = "(as requests say)" }) => [id, state, policy, url].join("  "));
};

export const showEndpoint: Run = async ({ args: [id = ""] }, world) =>
  shown(await (await world.client()).endpoints.get(id));

export const addEndpoint: Run = async ({ args: [url = ""], options }, world) => {
  const { secret, ...endpoint } = await (await world.client()).endpoints.create({ url, ...saidOf(options) });
  return { json: { ...endpoint, secret }, text: [...linesOf(endpoint), `secret, shown only this once: ${secret}`] };
};

export const setEndpoint: Run = async ({ args: [id = ""], options }, world) => {
  const change = { ...saidOf(options), ...definedOf({ url: options.url }) };
  return shown(await (await world.client()).endpoints.change(id, change));
};

export const deleteEndpoint: Run = async ({ args: [id = ""] }, world) => {
  await (await world.client()).endpoints.delete(id);
  return said(`${id} is deleted`, { id, deleted: true });
};

export const pauseEndpoint: Run = async ({ args: [id = ""], options: { reason = "" } }, world) =>
  said(`${id} is paused`, await (await world.client()).endpoints.pause(id, reason));

export const resumeEndpoint: Run = async ({ args: [id = ""] }, world) =>
  said(`${id} goes on`, await (await world.client()).endpoints.resume(id));

export const rotateEndpoint: Run = async ({ args: [id = ""] }, world) => {
  const rotated = await (await world.client()).endpoints.rotate(id);
  const { secret, publicKey, previousSecretUntil } = rotated;
  const text = [
    `secret, shown only this once: ${secret}`,
    `public key: ${publicKey}`,
    `the ones before sign beside them until ${previousSecretUntil}`,
  ];
  return { json: rotated, text };
};

export const testEndpoint: Run = async ({ args: [id = ""], options }, world) => {
  const tested = await (await world.client()).endpoints.test(id, definedOf({ url: options.url }));
  const { delivered, status, error, latencyMs, body = "" } = tested;
  const text = [`${delivered ? "delivered" : "NOT delivered"}: ${error ?? status} in ${latencyMs} ms`];
  return {
    json: tested,
    text: body === "" ? text : [...text, ...body.split("\n")],
    code: delivered ? EXIT.done : EXIT.failed,
  };
};

export const replayEndpoint: Run = async ({ args: [id = ""], options: { since = "", until } }, world) => {
  const { endpoints } = await world.client();
  let replayed = 0;
  let cursor: string | null = null;
  do {
    const which = { since, ...definedOf({ until }), limit: 1000, ...(cursor && { cursor }) };
    const done: { replayed: number; nextCursor: string | null } = await endpoints.replay(id, which);
    replayed += done.replayed;
    cursor = done.nextCursor;
  } while (cursor !== null);
  return said(`${replayed} are sent again`, { replayed });
};

export const listDeliveries: Run = async ({ args: [id = ""] }, world) => {
  const { data } = await (await world.client()).endpoints.deliveries(id);
  return listed(data, ({ createdAt, status, type, webhookId, tries }) => {
    const { number = 0, answer, error } = tries.at(-1) ?? {};
    return [createdAt, status, type, webhookId, `tries ${number}`, error ?? answer?.status ?? ""].join("  ");
  });
};

export const listDeadCallbacks: Run = async (_call, world) => {
  const { data } = await (await world.client()).callbackDeadLetters.list();
  return listed(data, ({ failedAt, endpointId, type, attempts, error = "" }) =>
    [failedAt, endpointId, type, `tries ${attempts}`, error].join("  "),
  );
};

export const requeueCallbacks: Run = async ({ options: { endpoint } }, world) => {
  const { callbackDeadLetters } = await world.client();
  let requeued = 0;
  let cursor: string | null = null;
  do {
    const done: { requeued: number; nextCursor: string | null } = await callbackDeadLetters.requeue({
      filter: definedOf({ endpoint }),
      ...(cursor && { cursor }),
    });
    requeued += done.requeued;
    cursor = done.nextCursor;
  } while (cursor !== null);
  return said(`${requeued} are sent again`, { requeued });
};

/** Words that the server does not know it refuses itself. */
const saidOf = ({ events, policy, fifo }: Call["options"]): Said =>
  ({ ...(events && { events: events.split(",") }), ...definedOf({ policy, fifo }) }) as Said;

const shown = (endpoint: Endpoint) => ({ json: endpoint, text: linesOf(endpoint) });

const linesOf = ({ id, url, state, reason, policy, events, fifo, rate, publicKey }: Endpoint): string[] => [
  `${id}  ${url ?? "(as requests say)"}`,
  `  ${state}${reason ? `: ${reason}` : ""}`,
  `  policy ${policy}${fifo ? `, in order by ${fifo}` : ""}${rate ? `, at most ${rate.most} a ${rate.per}` : ""}`,
  `  events ${events?.join(" ") ?? "all"}`,
  `  public key ${publicKey}`,
];
