// The help, written from the table of commands.

import { type Command, EXIT, type Option } from "./command.ts";
import { optionsOf } from "./parse.ts";
import { GROUPS } from "./table/groups.ts";

const WIDTH = 46;

export const usageOf = ({ name, arguments: wanted = [], options = {} }: Command): string =>
  [
    `carillon ${name}`,
    ...wanted.map(({ name: of, isOptional }) => (isOptional ? `[${of}]` : of)),
    ...Object.entries(options).map(([option, { value, needed }]) => {
      const said = value === undefined ? `--${option}` : `--${option} ${value}`;
      return needed === undefined ? `[${said}]` : said;
    }),
  ].join(" ");

/** Short: the options stand in the help of each command. */
const shortUsage = ({ name, arguments: wanted = [], options = {} }: Command): string => {
  const needed = Object.entries(options).filter(([, option]) => option.needed !== undefined);
  const words = wanted.map(({ name: of, isOptional }) => (isOptional ? `[${of}]` : of));
  return [`carillon ${name}`, ...words, ...needed.map(([option, { value }]) => `--${option} ${value}`)].join(" ");
};

const EXPLAINED = `Every command explains itself: carillon COMMAND --help. Options that all have: --json, --help.
send to refusals ask a running Carillon: CARILLON_URL (default http://HOST:PORT) with the key CARILLON_API_KEY.
Configuration: environment variables and carillon.config.ts, .js or .json; see docs/configuration.md.
Exit codes: ${Object.entries(EXIT)
  .map(([name, code]) => `${code} ${name.replace("notFound", "not found").replace("usage", "wrong use")}`)
  .join(", ")}; see docs/cli.md.`;

export function overview(version: string): string {
  const groups = GROUPS.map(({ title, commands }) => [title, ...commands.map(lineOf)].join("\n"));
  return [`carillon ${version}: notifications, accepted means kept`, ...groups, EXPLAINED].join("\n\n");
}

const lineOf = (command: Command): string => aligned(shortUsage(command), command.help, WIDTH);

const aligned = (left: string, right: string, width: number): string =>
  left.length > width - 2 ? `  ${left}\n  ${" ".repeat(width)}${right}` : `  ${left.padEnd(width)}${right}`;

/** Of one command. */
export function helpOf(command: Command): string {
  const options = Object.entries(optionsOf(command)).map(([name, option]) => optionLine(name, option));
  const parts = [usageOf(command), `${command.help[0]?.toUpperCase()}${command.help.slice(1)}.`];
  if (command.more !== undefined) parts.push(command.more);
  return [...parts, options.join("\n")].join("\n\n");
}

/** Of those whose names begin with a word. */
export const helpOfGroup = (word: string, commands: readonly Command[]): string =>
  commands
    .filter(({ name }) => name === word || name.startsWith(`${word} `))
    .map(lineOf)
    .join("\n");

function optionLine(name: string, { value, help, short, words }: Option): string {
  const said = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
  const which = words === undefined ? "" : ` (${words.join(", ")})`;
  return aligned(said, `${help}${which}`, 26);
}

/** The same for programs. */
export const describe = (command: Command) => ({
  name: command.name,
  help: command.help,
  usage: usageOf(command),
  arguments: command.arguments ?? [],
  options: Object.entries(optionsOf(command)).map(([name, { needed, ...option }]) => ({
    name,
    ...option,
    isNeeded: needed !== undefined,
  })),
});
