// The OpenAPI 3.1 document, drawn from the routes. Our schemas are JSON Schema already, which is
// what 3.1 takes, so they go in as they are.

import type { TSchema } from "typebox";
import { PROBLEMS } from "#domain/problems.ts";
import type { Route } from "./route.ts";
import { ProblemSchema } from "./schemas.ts";

type Json = { [name: string]: unknown };

const PROBLEM = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
const STREAM = { "text/event-stream": { schema: { type: "string" } } };

export function openapi(routes: readonly Route[], version: string): Json {
  const paths: { [path: string]: Json } = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Carillon",
      version,
      summary: "Notifications: accepted means kept",
      description:
        "No text may contain NUL. What a schema cannot say (a time that lies ahead, a time zone that exists, what a channel needs) is " +
        "answered with 422 and every fault.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer", description: "An API key, ck_<id>_<secret>" } },
      schemas: { Problem: ProblemSchema },
    },
    "x-problems": PROBLEMS,
  };
}

function operation(route: Route): Json {
  const parameters = [
    ...parametersOf("path", route.params),
    ...parametersOf("query", route.query),
    ...parametersOf("header", route.headers),
  ];
  const responses: Json = {};
  for (const [status, { description, schema, mediaType, streams }] of Object.entries(route.answers)) {
    const isProblem = Number(status) >= 400 && !schema;
    const type = mediaType ?? (Number(status) >= 400 ? "application/problem+json" : "application/json");
    responses[status] = {
      description,
      ...(isProblem && { content: PROBLEM }),
      ...((schema || mediaType) && { content: { [type]: schema ? { schema } : {}, ...(streams && STREAM) } }),
    };
  }
  responses.default = { description: "A problem; `code` says which", content: PROBLEM };
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...(route.detail && { description: route.detail }),
    tags: [route.tag],
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: { required: !route.isBodyOptional, content: { "application/json": { schema: route.body } } },
    }),
    responses,
    security: route.scope ? [{ key: [] }] : [],
    ...(route.scope && { "x-scope": route.scope }),
  };
}

function parametersOf(place: "path" | "query" | "header", schema: TSchema | undefined): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Json; required?: string[] };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: property,
  }));
}

const operationId = ({ method, path }: Route): string =>
  method.toLowerCase() + path.replace(/[/:.-]+(\w)/g, (_, letter: string) => letter.toUpperCase()).replace(/\W/g, "");
