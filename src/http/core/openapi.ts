// The OpenAPI 3.1 document, drawn from the routes. Our schemas are JSON Schema already, which is
// what 3.1 takes; they get names, descriptions and examples on the way (describe/).

import type { TSchema } from "typebox";
import { idOf, METHODS } from "#client/methods.ts";
import { PROBLEMS } from "#domain/problems.ts";
import { BODIES } from "#http/describe/bodies.ts";
import { describe, describeField, type Shape } from "#http/describe/describe.ts";
import { exampleOf } from "#http/describe/examples.ts";
import { namedShapes, referrer } from "#http/describe/refer.ts";
import { TAGS } from "#http/describe/tags.ts";
import type { Route } from "./route.ts";
import { ProblemSchema } from "./schemas.ts";

type Json = { [name: string]: unknown };
type Shapes = { [name: string]: Shape };
/** What all operations are written with. */
type Writing = { refer: (shape: Shape, root?: string) => Shape; shapes: Shapes };

export function openapi(routes: readonly Route[], version: string): Json {
  const writing = writingOf(routes);
  const paths: { [path: string]: Json } = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, writing) };
  }
  const tags = [...new Set(routes.map(({ tag }) => tag))];
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
    tags: tags.map((name) => ({ name, ...(TAGS[name] && { description: TAGS[name] }) })),
    paths,
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer", description: "An API key, ck_<id>_<secret>" } },
      schemas: writing.shapes,
    },
    "x-problems": PROBLEMS,
  };
}

/** What the operation is called: as the client has it, or by its path where that does not know it. */
export function operationId({ method, path }: Pick<Route, "method" | "path">): string {
  const written = METHODS[`${method} ${path}`];
  if (written !== undefined) return idOf(written);
  const words = path.replace(/[/:.-]+(\w)/g, (_, letter: string) => letter.toUpperCase()).replace(/\W/g, "");
  return method.toLowerCase() + words;
}

/** Every schema that has a name, written with references to the others and described. */
function writingOf(routes: readonly Route[]): Writing {
  const operations = routes.map((route) => [operationId(route), bodiesOf(route)] as const);
  const named = [...namedShapes(Object.fromEntries(operations)), { name: "Problem", shape: plain(ProblemSchema) }];
  const refer = referrer(named);
  const shapes = named.map(({ name, shape }) => [name, describe(refer(shape, name), { owner: name })] as const);
  return { refer, shapes: Object.fromEntries(shapes) };
}

function bodiesOf({ body, answers }: Route): { [place: string]: Shape } {
  const answered = Object.entries(answers).flatMap(([status, { schema }]) => (schema ? [[status, plain(schema)]] : []));
  return { ...(body && { body: plain(body) }), ...Object.fromEntries(answered) };
}

/** TypeBox keeps marks of its own beside JSON Schema. */
const plain = (schema: TSchema): Shape => JSON.parse(JSON.stringify(schema));

function operation(route: Route, writing: Writing): Json {
  const id = operationId(route);
  const parameters = [
    ...parametersOf("path", route.params, id, route.tag),
    ...parametersOf("query", route.query, id, route.tag),
    ...parametersOf("header", route.headers, id, route.tag),
  ];
  return {
    operationId: id,
    summary: route.summary,
    description: route.detail ?? `${route.summary}.`,
    tags: [route.tag],
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: requestBody(route, route.body, writing) }),
    responses: responsesOf(route, writing),
    security: route.scope ? [{ key: [] }] : [],
    ...(route.scope && { "x-scope": route.scope }),
    // What no schema can say: that names may go on after this.
    ...(route.queryPrefix !== undefined && { "x-query-prefix": route.queryPrefix }),
  };
}

function requestBody(route: Route, body: TSchema, { refer, shapes }: Writing): Json {
  const owner = operationId(route);
  const schema = describe(refer(plain(body)), { owner, tag: route.tag });
  const example = BODIES[owner] ?? exampleOf(schema, shapes, "required");
  return { required: !route.isBodyOptional, content: { "application/json": { schema, example } } };
}

function responsesOf(route: Route, { refer, shapes }: Writing): Json {
  const place = { owner: operationId(route), tag: route.tag };
  const answers = Object.entries(route.answers).map(([status, { description, schema, mediaType, streams }]) => {
    const isProblem = Number(status) >= 400 && !schema;
    const type = mediaType ?? (Number(status) >= 400 ? "application/problem+json" : "application/json");
    const shape = schema && describe(refer(plain(schema)), place);
    const media = shape ? { schema: shape, example: exampleOf(shape, shapes) } : unsaid(type);
    const content = { [type]: media, ...(streams && { "text/event-stream": { schema: { type: "string" } } }) };
    return [status, { description, ...(isProblem ? problem(shapes) : (schema || mediaType) && { content }) }];
  });
  const refused = refusalsOf(route).map(([status, description]) => [status, { description, ...problem(shapes) }]);
  return {
    ...Object.fromEntries(refused),
    ...Object.fromEntries(answers),
    default: { description: "A problem; `code` says which", ...problem(shapes) },
  };
}

/** What comes on a stream are events, each with a type of its own: no schema says that. */
const unsaid = (mediaType: string) => (mediaType === "text/event-stream" ? {} : { schema: { type: "string" } });

const problem = (shapes: Shapes) => ({
  content: {
    "application/problem+json": {
      schema: { $ref: "#/components/schemas/Problem" },
      example: exampleOf(shapes.Problem ?? {}, shapes),
    },
  },
});

/** What every route of its kind answers with when it does not do it. */
function refusalsOf({ scope, params, query, body, isRaw }: Route): [number, string][] {
  const title = (code: keyof typeof PROBLEMS) => `\`${code}\`: ${PROBLEMS[code].title.toLowerCase()}`;
  return [
    ...(scope
      ? ([
          [401, title("UNAUTHENTICATED")],
          [403, title("FORBIDDEN")],
        ] as [number, string][])
      : []),
    ...(params ? ([[404, title("NOT_FOUND")]] as [number, string][]) : []),
    ...(query || (body && !isRaw) ? ([[422, title("VALIDATION_FAILED")]] as [number, string][]) : []),
    ...(scope || params ? [] : ([[405, title("METHOD_NOT_ALLOWED")]] as [number, string][])),
  ];
}

function parametersOf(
  place: "path" | "query" | "header",
  schema: TSchema | undefined,
  owner: string,
  tag: string,
): Json[] {
  const { properties = {}, required = [] } = schema ? plain(schema) : {};
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...shape } = describeField(name, property, { owner, tag, around: place });
    return {
      name,
      in: place,
      required: place === "path" || required.includes(name),
      ...(description !== undefined && { description }),
      schema: shape,
    };
  });
}
