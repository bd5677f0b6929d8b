// The OpenAPI document as the service serves it, for tests that walk it.

import { randomBytes } from "node:crypto";
import { startService } from "./service.ts";

export type Shape = {
  $ref?: string;
  type?: string;
  description?: string;
  examples?: unknown[];
  enum?: unknown[];
  const?: unknown;
  required?: string[];
  properties?: { [name: string]: Shape };
  items?: Shape;
  anyOf?: Shape[];
  oneOf?: Shape[];
  additionalProperties?: Shape | boolean;
};
type Media = { schema?: Shape; example?: unknown };
export type Parameter = {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: Shape;
};
export type Operation = {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: { [type: string]: Media } };
  responses: { [status: string]: { description: string; content?: { [type: string]: Media } } };
  "x-scope"?: string;
  "x-query-prefix"?: string;
};
export type Body = { at: string; shape: Shape; example: unknown };
export type Document = {
  tags: { name: string; description?: string }[];
  "x-problems": { [code: string]: unknown };
  components: { schemas: { [name: string]: Shape } };
  paths: { [path: string]: { [method: string]: Operation } };
  /** `at` is as the client's table has it: `GET /v1/notifications/:id`. */
  operations: { at: string; operation: Operation }[];
  /** JSON that it takes and answers. */
  bodiesOf(operation: Operation): Body[];
};

export async function readDocument(): Promise<Document> {
  const service = await startService({ roles: ["api", "stream"], development: true, secretKeys: [randomBytes(32)] });
  try {
    const { body } = await service.ask("GET", "/openapi.json");
    return { ...body, operations: operationsOf(body), bodiesOf };
  } finally {
    await service.stop();
  }
}

export const operationsOf = ({ paths }: Pick<Document, "paths">): Document["operations"] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      at: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`,
      operation,
    })),
  );

function bodiesOf({ requestBody, responses }: Operation): Body[] {
  const of = (content: { [type: string]: Media } | undefined, at: string): Body[] =>
    Object.entries(content ?? {}).flatMap(([type, { schema, example }]) =>
      type.includes("json") && schema ? [{ at, shape: schema, example }] : [],
    );
  return [
    ...of(requestBody?.content, "body"),
    ...Object.entries(responses).flatMap(([status, { content }]) => of(content, status)),
  ];
}
