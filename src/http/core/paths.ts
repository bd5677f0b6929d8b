// Which paths there are, for requests that no route serves.

import type { FastifyReply, FastifyRequest } from "fastify";
import { Problem } from "#domain/problems.ts";
import type { Method, Route } from "./route.ts";

export type Path = { path: string; pattern: RegExp; methods: Method[] };

/** Fixed ones first: they win over those with names in them. */
export function pathsOf(routes: readonly Route[]): Path[] {
  return [...new Set(routes.map(({ path }) => path))]
    .map((path) => ({
      path,
      pattern: new RegExp(`^${path.replaceAll(".", "[.]").replace(/:\w+/g, "[^/]+")}$`),
      methods: routes.filter((route) => route.path === path).map(({ method }) => method),
    }))
    .sort((a, b) => Number(a.path.includes(":")) - Number(b.path.includes(":")));
}

/** A path that exists answers a wrong method with 405 and the right ones, an unknown path with 404. */
export function refuse({ method, url }: FastifyRequest, reply: FastifyReply, paths: readonly Path[]): never {
  const path = url.split("?", 1)[0] ?? "";
  const found = paths.find(({ pattern }) => pattern.test(path));
  if (!found) throw new Problem("NOT_FOUND", `there is no ${method} ${path}`);
  reply.header("allow", found.methods.join(", "));
  throw new Problem("METHOD_NOT_ALLOWED", `use ${found.methods.join(" or ")}`);
}
