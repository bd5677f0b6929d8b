// Writes the client's types from the OpenAPI document: a type for every schema that has a name, requests told apart by their channel, and a
// method for every operation, each with the sentence that editors show. test/client/generated.test.ts runs it.

import { idOf, METHODS, signatureOf } from "#client/methods.ts";
import { CHANNELS, NEEDS } from "#domain/notification.ts";
import type { Document, Operation, Parameter, Shape } from "../test/support/api-document.ts";

const HEADER = `// The types of the client's methods and of what they take and answer. Long, for it is written by scripts/client-types.ts from the schemas that
// the service validates with; test/client/generated.test.ts fails while it says something else. To write it anew:
//
//   CARILLON_WRITE=1 node test/run.ts test/client/generated.test.ts

import type { RawBody } from "./bind.ts";
import type { CallOptions } from "./call.ts";
import type { InboxEvent } from "./events.ts";

/** One page of a list. Go on with \`nextCursor\` as the \`cursor\` until it is null. */
export type Page<Item> = { data: Item[]; nextCursor: string | null };

/** With these fields. */
type Has<T, Field extends keyof T> = T & { [name in Field]-?: NonNullable<T[name]> };
/** With one of these fields, at least. */
type Some<T, Field extends keyof T> = { [name in Field]-?: Has<T, name> }[Field];
`;

/** Told apart by channel, and written by hand below. */
const BY_CHANNEL = ["NotificationRequest", "Notice"];
/** What no schema says, for it is whatever a provider was handed. */
const MESSAGE = `/** As it would have been sent, with its template filled in; for push with the device. */
export type Message = NotificationRequest & { device?: { token: string; platform: "ios" | "android" | "web" } };`;
/** What the document writes as text, and the client takes as what it is. */
const PARAMETERS: { [place: string]: string } = { "eventsList types": "readonly FactType[]" };
const ANSWERS: { [id: string]: string } = {
  inboxFollow: "AsyncGenerator<InboxEvent, void>",
  cancel: "Promise<Cancellation>",
};

export function clientTypes(document: Document): string {
  const { schemas } = document.components;
  const words = wordsOf(schemas);
  const write = (shape: Shape) => typeOf(shape, words);
  const message = { message: { $ref: "Message", description: "As it would have been sent" } };
  const named = ([name, shape]: [string, Shape]): [string, Shape] =>
    shape.properties?.message ? [name, { ...shape, properties: { ...shape.properties, ...message } }] : [name, shape];
  const problems = Object.keys(document["x-problems"]);
  return [
    HEADER,
    ...[...words].map(([literal, name]) => `export type ${name} = ${literal};`),
    `export type ProblemCode = ${problems.map((code) => JSON.stringify(code)).join(" | ")};`,
    ...Object.entries(schemas)
      .filter(([name]) => !BY_CHANNEL.includes(name))
      .map(named)
      .map(([name, shape]) => `export type ${name} = ${write(shape)};`),
    MESSAGE,
    ...BY_CHANNEL.flatMap((name) => byChannel(name, schemas[name] ?? {}, write)),
    `/** \`reason\` says why it could no longer be cancelled. */
export type Cancellation = { notificationId: string; cancelled: boolean; reason?: string };`,
    ...document.operations.flatMap((one) => queryType(one.operation, write)),
    methods(document, write),
  ].join("\n\n");
}

/** The lists of words that have a name of their own. */
function wordsOf(schemas: { [name: string]: Shape }): Map<string, string> {
  const { channel, priority, callbackEvents } = schemas.NotificationRequest?.properties ?? {};
  const named: [string, Shape | undefined][] = [
    ["Channel", channel],
    ["Priority", priority],
    ["Status", schemas.Acceptance?.properties?.status],
    ["FactType", callbackEvents?.items],
  ];
  return new Map(named.map(([name, shape]) => [literals(shape?.enum ?? []), name]));
}

const literals = (values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join(" | ");

function typeOf(shape: Shape, words: Map<string, string>): string {
  const of = (one: Shape) => typeOf(one, words);
  if (shape.$ref !== undefined) return shape.$ref.split("/").at(-1) ?? "";
  if (shape.const !== undefined) return JSON.stringify(shape.const);
  if (shape.enum) return words.get(literals(shape.enum)) ?? literals(shape.enum);
  if (shape.anyOf) {
    const types = [...new Set(shape.anyOf.map(of))].filter((type) => type !== "unknown");
    return types.join(" | ");
  }
  if (shape.items) return `Array<${of(shape.items)}>`;
  switch (shape.type) {
    case "object":
      return objectType(shape, of);
    case "integer":
      return "number";
    case "string":
    case "number":
    case "boolean":
    case "null":
      return shape.type;
    default:
      return "unknown";
  }
}

function objectType(shape: Shape, of: (shape: Shape) => string): string {
  const { properties = {}, additionalProperties, oneOf } = shape;
  const rest =
    typeof additionalProperties === "object"
      ? `[name: string]: ${of(additionalProperties)};`
      : Object.keys(properties).length === 0 || additionalProperties === true
        ? "[name: string]: unknown;"
        : "";
  // One of several fields, and not two.
  const exclusive = (oneOf ?? []).flatMap(({ required = [] }) => required);
  const shared = Object.entries(properties).filter(([name]) => !exclusive.includes(name));
  const base = `{ ${shared.map(([name, field]) => fieldType(name, field, shape, of)).join("\n")} ${rest} }`;
  if (exclusive.length === 0) return base;
  const choices = exclusive.map((chosen) => {
    const fields = exclusive.map((name) =>
      name === chosen
        ? fieldType(name, properties[name] ?? {}, { required: [name] }, of)
        : `${JSON.stringify(name)}?: never;`,
    );
    return `{ ${fields.join("\n")} }`;
  });
  return `${base} & (${choices.join(" | ")})`;
}

function fieldType(name: string, field: Shape, { required = [] }: Shape, of: (shape: Shape) => string): string {
  const example = field.examples?.[0];
  const shown =
    example === undefined || typeof example === "boolean" ? "" : ` For example \`${JSON.stringify(example)}\`.`;
  return `${comment(`${field.description ?? ""}.${shown}`)}${JSON.stringify(name)}${required.includes(name) ? "" : "?"}: ${of(field)};`;
}

/** Wrapped, for whoever reads the file. */
function comment(text: string): string {
  const lines =
    text
      .replaceAll("*/", "*\\/")
      .trim()
      .match(/.{1,110}(?= |$)/g) ?? [];
  if (lines.length <= 1) return `/** ${lines.join("")} */\n`;
  return `/**\n${lines.map((line) => ` * ${line.trim()}`).join("\n")}\n */\n`;
}

/** A type for each channel, and the union of them. */
function byChannel(name: string, shape: Shape, write: (shape: Shape) => string): string[] {
  const special = ["channel", "recipient", "recipients", "content"];
  const { properties = {} } = shape;
  const fields = Object.fromEntries(Object.entries(properties).filter(([field]) => !special.includes(field)));
  const kind = name === "Notice" ? "Notice" : "Request";
  const isNotice = kind === "Notice";
  const types = CHANNELS.map((channel) => {
    const { recipient, content } = NEEDS[channel];
    const to = needed("Recipient", recipient);
    const who = recipient.length === 0 || isNotice ? "recipient?" : "recipient";
    const several = isNotice ? `${comment(`${properties.recipients?.description}.`)}recipients?: Array<${to}>;` : "";
    return `export type ${capital(channel)}${kind} = ${kind}Fields & {
      ${comment(`${properties.channel?.description}.`)}channel: "${channel}";
      ${comment(`${properties.recipient?.description}.`)}${who}: ${to}; ${several}
      ${comment(`${properties.content?.description}.`)}content: ${needed("Content", content)};
    };`;
  });
  return [
    `/** What ${isNotice ? "a notice" : "a request"} may say whatever its channel. */\nexport type ${kind}Fields = ${write({ type: "object", properties: fields })};`,
    ...types,
    `/** ${isNotice ? "A notification without a time of its own, for one recipient or several" : "A message to one recipient"}: \`channel\` says what it needs. */
export type ${name} = ${CHANNELS.map((channel) => capital(channel) + kind).join(" | ")};`,
  ];
}

const needed = (type: string, lists: readonly string[][]): string =>
  lists.map((names) => `${names.length === 1 ? "Has" : "Some"}<${type}, ${literals(names)}>`).join(" & ") || type;

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
const queryName = (id: string): string => `${capital(id)}Query`;
const inQuery = ({ parameters = [] }: Operation): Parameter[] => parameters.filter((one) => one.in === "query");

function queryType(operation: Operation, write: (shape: Shape) => string): string[] {
  const parameters = inQuery(operation);
  if (parameters.length === 0) return [];
  const fields = parameters.map(({ name, required, description, schema }) => {
    const type = PARAMETERS[`${operation.operationId} ${name}`] ?? write(schema);
    return fieldType(
      name,
      { ...schema, description: description ?? "" },
      { required: required ? [name] : [] },
      () => type,
    );
  });
  const prefix = operation["x-query-prefix"]?.replace(/\.$/, "");
  if (prefix)
    fields.push(`${comment(`Fields of the ${prefix} that are to be equal.`)}${prefix}?: { [name: string]: string };`);
  return [`export type ${queryName(operation.operationId)} = { ${fields.join("\n")} };`];
}

type Written = {
  id: string;
  names: string[];
  operation: Operation;
  args: { name: string; type: string; isOptional: boolean }[];
};

/** The client as an interface: methods of one name are one, which takes the word that tells them apart. */
function methods(document: Document, write: (shape: Shape) => string): string {
  const written = document.operations.flatMap(({ at, operation }): Written[] => {
    const line = METHODS[at];
    if (line === undefined) return [];
    const { names, args } = signatureOf(line);
    return [{ id: idOf(line), names, operation, args: args.map((arg) => argument(arg, operation, document, write)) }];
  });
  return `export type GeneratedClient = { ${membersOf(written, 0, write)} };\n`;
}

/** Those whose names go on, each group within its own braces. */
function membersOf(written: readonly Written[], depth: number, write: (shape: Shape) => string): string {
  const members = grouped(written, ({ names }) => names[depth] ?? "").map(([name, ours]) =>
    ours.every(({ names }) => names.length === depth + 1)
      ? method(name, ours, write)
      : `${name}: { ${membersOf(ours, depth + 1, write)} };`,
  );
  return members.join("\n");
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): [string, Item[]][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups];
}

function method(name: string, same: readonly Written[], write: (shape: Shape) => string): string {
  const [first] = same;
  if (!first) return "";
  const { operation, id } = first;
  const args = first.args.map((arg, n) => {
    const types = [...new Set(same.map((one) => one.args[n]?.type ?? "never"))];
    // A union with string is string.
    const type = types.includes("string") ? "string" : types.join(" | ");
    return `${arg.name}${arg.isOptional ? "?" : ""}: ${type}`;
  });
  const words = same.length > 1 ? "" : ` Scope: \`${operation["x-scope"] ?? "none"}\`.`;
  const summary = same.length > 1 ? same.map((one) => one.operation.summary).join("; ") : operation.summary;
  const more = operation.description === `${operation.summary}.` ? "" : ` ${operation.description}`;
  const answer = ANSWERS[id] ?? `Promise<${answerOf(operation, write)}>`;
  return `${comment(`${summary}.${more}${words}`)}${name}(${[...args, "options?: CallOptions"].join(", ")}): ${answer};`;
}

function argument(arg: string, operation: Operation, { components }: Document, write: (shape: Shape) => string) {
  const [place = "", field] = arg.split(".");
  if (arg.startsWith('"')) return { name: "kind", type: arg, isOptional: false };
  if (place === "raw") return { name: "raw", type: "RawBody", isOptional: false };
  if (place === "body") {
    const { schema = {} } = operation.requestBody?.content["application/json"] ?? {};
    const isOptional = operation.requestBody?.required === false;
    if (field === undefined) return { name: "body", type: write(schema), isOptional };
    const { properties } = schema.$ref ? (components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}) : schema;
    const type = write(properties?.[field] ?? {}).replace(/^Array</, "ReadonlyArray<");
    return { name: field, type, isOptional };
  }
  const parameters = operation.parameters ?? [];
  if (place === "query") {
    const found = inQuery(operation).find(({ name }) => name === field);
    if (found) return { name: found.name, type: write(found.schema), isOptional: !found.required };
    const isOptional = inQuery(operation).every(({ required }) => !required);
    return { name: "query", type: queryName(operation.operationId), isOptional };
  }
  const found = parameters.find(({ name, in: where }) => name === arg && where === "path");
  if (!found) throw new Error(`${operation.operationId} has no ${arg} in its path`);
  return { name: arg, type: write(found.schema), isOptional: false };
}

function answerOf({ responses }: Operation, write: (shape: Shape) => string): string {
  const [status, answer] = Object.entries(responses).findLast(([code]) => code.startsWith("2")) ?? ["204", undefined];
  const media = Object.entries(answer?.content ?? {});
  const json = media.find(([type]) => type.includes("json"))?.[1].schema;
  if (!json && media.some(([type]) => type === "application/octet-stream")) return "Uint8Array";
  if (!json) return status === "204" || media.length === 0 ? "void" : "string";
  const { data, nextCursor, ...rest } = json.properties ?? {};
  if (data?.items && nextCursor && Object.keys(rest).length === 0) return `Page<${write(data.items)}>`;
  return write(json);
}
