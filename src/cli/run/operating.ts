// Commands for who runs it: providers, pauses, tenants, people.

import type { PausedKind } from "#client/client.ts";
import { EXIT, type Run } from "../command.ts";
import { columns, definedOf, listed, readAll, said } from "./lines.ts";

export const listProviders: Run = async (_call, world) => {
  const { data } = await (await world.client()).providers();
  return listed(data, ({ name, type, routes, health }) => {
    const state = health ? `${health.healthy ? "healthy" : "UNHEALTHY"}: ${health.detail}` : "";
    return columns([name, type, routes.join(" ") || "-", state]);
  });
};

export const testProvider: Run = async ({ args: [name = ""] }, world) => {
  const found = await (await world.client()).testProvider(name);
  const { healthy, detail } = found;
  const text = `${name}: ${healthy ? "healthy" : "UNHEALTHY"}, ${detail}`;
  return said(text, { name, ...found }, healthy ? EXIT.done : EXIT.failed);
};

export const pause =
  (kind: PausedKind): Run =>
  async ({ args: [name = ""], options: { reason = "", until } }, world) => {
    const paused = await (await world.client()).pause(kind, name, { reason, ...definedOf({ until }) });
    return said(`${kind} ${name} is paused${paused.until ? ` until ${paused.until}` : ""}`, paused);
  };

export const resume =
  (kind: PausedKind): Run =>
  async ({ args: [name = ""] }, world) => {
    await (await world.client()).resume(kind, name);
    return said(`${kind} ${name} goes on`, { kind, name, paused: false });
  };

export const listPauses: Run = async (_call, world) => {
  const { data } = await (await world.client()).pauses();
  return listed(data, ({ kind, name, tenant, pausedAt, until, reason }) => {
    const what = `${kind} ${name}${tenant === undefined ? "" : ` of ${tenant}`}`;
    return columns([what, `since ${pausedAt}`, until ? `until ${until}` : "", reason]);
  });
};

export const listTenants: Run = async (_call, world) => {
  const client = await world.client();
  const tenants = await readAll((page) => client.tenants.list(page));
  return listed(tenants, ({ name, weight, createdAt }) => columns([name, `weight ${weight}`, createdAt]));
};

export const weighTenant: Run = async ({ args: [name = ""], options }, world) => {
  const tenant = await (await world.client()).tenants.weigh(name, Number(options.weight));
  return said(`${name} has weight ${tenant.weight}`, tenant);
};

export const deleteUser: Run = async ({ args: [userId = ""] }, world) => {
  const deletion = await (await world.client()).users.delete(userId);
  const { state, requestedAt } = deletion;
  return said(`${userId} is being forgotten, as asked at ${requestedAt}: ${state}`, deletion);
};

/** Much, perhaps: a line of JSON for each thing that is known, as it comes. */
export const exportUser: Run = async ({ args: [userId = ""] }, world) => {
  for await (const known of (await world.client()).users.export(userId)) world.print(JSON.stringify(known));
  return EXIT.done;
};
