// From words to a command and what was said to it, or a sentence about what is wrong with them.

import { parseArgs } from "node:util";
import type { Call, Command, Option } from "./command.ts";
import { nearest } from "./nearest.ts";

/** Those that every command has. */
export const GLOBAL: { readonly [name: string]: Option } = {
  json: { help: "one JSON document, or a line of JSON each where it follows" },
  help: { help: "this, for one command", short: "h" },
};

export type Parsed =
  | { kind: "run"; command: Command; call: Call; isJson: boolean }
  | { kind: "help"; command: Command | undefined; words: readonly string[]; isJson: boolean }
  | { kind: "version" }
  | { kind: "fault"; message: string; command?: Command | undefined };

export function parse(args: readonly string[], commands: readonly Command[]): Parsed {
  const early = args.findIndex((word) => !word.startsWith("-"));
  const before = early === -1 ? args : args.slice(0, early);
  const rest = early === -1 ? [] : args.slice(early);
  if (before.some((word) => word === "--version" || word === "-v")) return { kind: "version" };
  if (rest[0] === "help") return help(rest.slice(1), before, commands);
  const found = findCommand(rest, commands);
  if (!found) return withoutCommand(before, rest, commands);
  const { command, words } = found;
  return readCall(command, [...before, ...rest.slice(words)]);
}

export const optionsOf = (command: Command): { readonly [name: string]: Option } => {
  const { json, ...others } = GLOBAL as { json: Option };
  return { ...command.options, ...(command.isPlain ? others : { json, ...others }) };
};

/** The longest name that the words begin with. */
function findCommand(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; words: number } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(" ");
    const command = words.length >= length ? commands.find((one) => one.name === name) : undefined;
    if (command) return { command, words: length };
  }
  return undefined;
}

function withoutCommand(before: readonly string[], rest: readonly string[], commands: readonly Command[]): Parsed {
  const words = rest.filter((word) => !word.startsWith("-"));
  const isHelp = [...before, ...rest].some((word) => word === "--help" || word === "-h");
  if (isHelp) return help(words, before, commands);
  const unknown = before.find((word) => word !== "--json");
  if (unknown !== undefined) return { kind: "fault", message: `there is no option ${unknown}` };
  if (words.length === 0) return { kind: "fault", message: "say what to do" };
  return { kind: "fault", message: unknownCommand(words, commands) };
}

function help(words: readonly string[], before: readonly string[], commands: readonly Command[]): Parsed {
  const isJson = [...before, ...words].includes("--json");
  const named = words.filter((word) => !word.startsWith("-"));
  const found = findCommand(named, commands);
  const isGroup = commands.some(({ name }) => name.startsWith(`${named[0]} `));
  if (named.length > 0 && !found && !(isGroup && named.length === 1)) {
    return { kind: "fault", message: unknownCommand(named, commands) };
  }
  return { kind: "help", command: found?.command, words: named, isJson };
}

function unknownCommand(words: readonly string[], commands: readonly Command[]): string {
  const [first = "", second] = words;
  const verbs = commands.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name);
  if (verbs.length > 0 && second === undefined) return `there is no command ${first} alone: ${verbs.join(", ")}`;
  const said = words.slice(0, verbs.length > 0 ? 2 : 1).join(" ");
  const near = nearest(said, verbs.length > 0 ? verbs : firstWords(commands));
  return `there is no command ${words.join(" ")}${near === undefined ? "" : `: did you mean ${near}?`}`;
}

/** A name of two words is near where its first is. */
const firstWords = (commands: readonly Command[]): string[] => [
  ...new Set(commands.flatMap(({ name }) => name.split(" ")[0] ?? [])),
];

function readCall(command: Command, args: readonly string[]): Parsed {
  const known = optionsOf(command);
  const fault = (message: string): Parsed => ({ kind: "fault", message, command });
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(known).map(([name, { value, short }]) => [
        name,
        { type: value === undefined ? ("boolean" as const) : ("string" as const), ...(short && { short }) },
      ]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const options: { [name: string]: string } = {};
  const flags = new Set<string>();
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (!option) return fault(unknownOption(token.rawName, command));
    if (option.value === undefined) {
      if (token.value !== undefined) return fault(`--${token.name} takes no value`);
      flags.add(token.name);
    } else if (token.value === undefined || (!token.inlineValue && /^--?[a-z]/.test(token.value))) {
      return fault(`--${token.name} needs a value: --${token.name} ${option.value}`);
    } else options[token.name] = token.value;
  }
  const isJson = flags.has("json");
  if (flags.has("help")) return { kind: "help", command, words: command.name.split(" "), isJson };
  const wrong = faultOfWords(command, words) ?? faultOfOptions(command, options);
  return wrong === undefined ? { kind: "run", command, call: { args: words, options, flags }, isJson } : fault(wrong);
}

function unknownOption(said: string, command: Command): string {
  const near = nearest(
    said.replace(/^-+/, ""),
    Object.keys(optionsOf(command)).map((name) => name),
  );
  return `${command.name} has no option ${said}${near === undefined ? "" : `: did you mean --${near}?`}`;
}

function faultOfWords({ name, arguments: wanted = [] }: Command, words: readonly string[]): string | undefined {
  const extra = words[wanted.length];
  if (extra !== undefined) return `${name} takes no argument ${words.slice(wanted.length).join(" ")}`;
  const missing = wanted.find((argument, n) => words[n] === undefined && !argument.isOptional);
  if (missing) return `${name} needs ${missing.name}`;
  const wrong = wanted.findIndex(({ words: of }, n) => words[n] !== undefined && of && !of.includes(words[n]));
  return wrong === -1 ? undefined : notOneOf(wanted[wrong]?.name ?? "", words[wrong] ?? "", wanted[wrong]?.words ?? []);
}

function faultOfOptions({ options = {} }: Command, said: { [name: string]: string }): string | undefined {
  for (const [name, { needed, words, least, value }] of Object.entries(options)) {
    const given = said[name];
    if (given === undefined || given === "") {
      if (needed !== undefined) return `${needed}: --${name} ${value}`;
      continue;
    }
    if (words && !words.includes(given)) return notOneOf(`--${name}`, given, words);
    if (least !== undefined && !(/^\d{1,15}$/.test(given) && Number(given) >= least)) {
      return `--${name} must be a whole number${least > 1 ? ` from ${least} on` : ""}, not ${given}`;
    }
  }
  return undefined;
}

function notOneOf(name: string, given: string, words: readonly string[]): string {
  const near = nearest(given, words);
  return `${name} must be one of ${words.join(", ")}, not ${given}${near === undefined ? "" : `: did you mean ${near}?`}`;
}
