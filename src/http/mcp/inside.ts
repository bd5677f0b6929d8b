// Calls a route of the API from inside, for somebody: by the same schemas, scopes and turns as from outside. So a tool can do what its
// caller's key can, and nothing else.

import type { KeyActor } from "#domain/actor.ts";
import { allows } from "#domain/api-key.ts";
import { Problem } from "#domain/problems.ts";
import { parserOf } from "#http/core/parse.ts";
import type { Ask, Route } from "#http/core/route.ts";
import type { RequestTurns } from "#http/core/turns.ts";

export type Given = { params?: object; query?: object; body?: unknown };
/** Throws the problem. */
export type Inside = (operation: string, given?: Given) => Promise<{ [field: string]: unknown }>;

export function createInside(routes: readonly Route[], turns: RequestTurns) {
  const served = new Map<string, { route: Route; parse: ReturnType<typeof parserOf> }>();
  for (const route of routes) served.set(`${route.method} ${route.path}`, { route, parse: parserOf(route) });
  return (actor: KeyActor, gone: Ask<never, never, never>["gone"]): Inside =>
    async (operation, { params = {}, query = {}, body } = {}) => {
      const found = served.get(operation);
      if (!found) throw new Problem("NOT_FOUND", `this process does not serve ${operation}`);
      const { route, parse } = found;
      if (route.scope && !allows(actor.scopes, route.scope)) {
        throw new Problem("FORBIDDEN", `this needs the scope ${route.scope}`);
      }
      const ask = { ...parse({ params, query, body }), header: () => undefined, url: route.path, actor, gone };
      const handle = async () => (await route.handle(ask as unknown as Ask<never, never, never>)).body;
      const { turn = "small" } = route;
      const answer = await (turn === "none" ? handle() : turns[turn](actor.tenant, handle));
      return (answer ?? {}) as { [field: string]: unknown };
    };
}
