// How an operation is called by curl, by the client and from Python, with what the document gives as examples. test/http/docs-examples.test.ts
// runs and compiles them.

import { METHODS, signatureOf } from "#client/methods.ts";

type Parameter = { name: string; in: string; required: boolean; schema: { examples?: unknown[] } };
export type Shown = {
  parameters?: Parameter[];
  requestBody?: { content: { [type: string]: { example?: unknown } } };
  responses: { [status: string]: { content?: { [type: string]: unknown } } };
  security: unknown[];
};
export type Examples = { curl: string; typescript: string; python: string };

/** Where it listens unless it is told otherwise; the page writes its own address in its place. */
export const BASE = "http://127.0.0.1:8420";

export function examplesOf(method: string, path: string, operation: Shown): Examples {
  const body = operation.requestBody?.content["application/json"]?.example;
  const isStream = operation.responses["200"]?.content?.["text/event-stream"] !== undefined && !hasJson(operation);
  const call = { method, url: BASE + pathOf(path, operation), body, isOpen: operation.security.length === 0, isStream };
  return { curl: curl(call), typescript: typescript(method, path, operation), python: python(call) };
}

const hasJson = ({ responses }: Shown): boolean => responses["200"]?.content?.["application/json"] !== undefined;

type Call = { method: string; url: string; body: unknown; isOpen: boolean; isStream: boolean };

/** With the parameters that must be there. */
function pathOf(path: string, { parameters = [] }: Shown): string {
  const exampleOf = ({ schema }: Parameter) => encodeURIComponent(String(schema.examples?.[0] ?? ""));
  const filled = path.replace(/:(\w+)/g, (_, name: string) => {
    const found = parameters.find((one) => one.name === name && one.in === "path");
    return found ? exampleOf(found) : "";
  });
  const query = parameters.filter((one) => one.in === "query" && one.required);
  return filled + query.map((one, n) => `${n === 0 ? "?" : "&"}${one.name}=${exampleOf(one)}`).join("");
}

function curl({ method, url, body, isOpen, isStream }: Call): string {
  const parts = [
    `curl ${isStream ? "--no-buffer " : ""}${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`,
    ...(isOpen ? [] : ['-H "Authorization: Bearer $CARILLON_API_KEY"']),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ];
  return parts.join(" \\\n  ");
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function typescript(method: string, path: string, { parameters = [], requestBody, responses }: Shown): string {
  const written = METHODS[`${method} ${path}`];
  if (written === undefined) return "";
  const { names, args } = signatureOf(written);
  const body = requestBody?.content["application/json"]?.example as { [name: string]: unknown } | undefined;
  const sampleOf = (name: string) => parameters.find((one) => one.name === name)?.schema.examples?.[0];
  const given = args.map((arg) => {
    const [place, field = ""] = arg.split(".");
    if (arg.startsWith('"')) return arg;
    if (place === "raw") return '{ body: "…", headers: { "x-signature": "…" } }';
    if (place === "body") return literal(field === "" ? body : body?.[field]);
    if (place === "query") return field === "" ? "" : literal(sampleOf(field));
    return literal(sampleOf(arg));
  });
  while (given.at(-1) === "") given.pop();
  const call = `carillon.${names.join(".")}(${given.join(", ")})`;
  const isVoid = responses["204"] !== undefined;
  const isStream = Object.keys(responses["200"]?.content ?? {}).join() === "text/event-stream";
  const used = isStream
    ? `for await (const event of ${call}) console.log(event);`
    : isVoid
      ? `await ${call};`
      : `const answer = await ${call};\nconsole.log(answer);`;
  return `import { createClient } from "carillon/client";\n\nconst carillon = createClient({ url: "${BASE}", key: "ck_…" });\n${used}`;
}

/** As people write it: names without quotes. */
const literal = (value: unknown): string =>
  (JSON.stringify(value, undefined, 2) ?? "").replace(/^(\s*)"([A-Za-z_]\w*)":/gm, "$1$2:");

function python({ method, url, body, isOpen }: Call): string {
  const headers = [
    ...(isOpen ? [] : ['"Authorization": f"Bearer {os.environ[\'CARILLON_API_KEY\']}"']),
    ...(body === undefined ? [] : ['"Content-Type": "application/json"']),
  ];
  const lines = [
    `    ${JSON.stringify(url)},`,
    ...(method === "GET" ? [] : [`    method=${JSON.stringify(method)},`]),
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(", ")}},`]),
    ...(body === undefined ? [] : [`    data=json.dumps(${pythonic(body, "    ")}).encode(),`]),
  ];
  const modules = [...(body === undefined ? [] : ["json"]), ...(isOpen ? [] : ["os"]), "urllib.request"];
  return `${modules.map((name) => `import ${name}`).join("\n")}\n
request = urllib.request.Request(\n${lines.join("\n")}\n)
with urllib.request.urlopen(request) as answer:
    print(answer.status, answer.read().decode())`;
}

/** A value as Python writes it. */
function pythonic(value: unknown, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const items = Array.isArray(value)
    ? value.map((one) => inner + pythonic(one, inner))
    : Object.entries(value).map(([name, one]) => `${inner}${JSON.stringify(name)}: ${pythonic(one, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return items.length === 0 ? open + close : `${open}\n${items.join(",\n")}\n${indent}${close}`;
}
