// What a command of the command line is: data. The arguments are read by it, the help and the completions are written from it.

import type { Client } from "#client/client.ts";
import type { Config } from "#config/read.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { Logger } from "#telemetry/log.ts";

export type Option = {
  /** What its value is called in the help; without one it is a flag. */
  value?: string;
  help: string;
  short?: string;
  /** All that it may be, where these are few. */
  words?: readonly string[];
  /** A whole number from `least` on. */
  least?: number;
  /** It must be said: what asks for it. */
  needed?: string;
  /** For completions. */
  isPath?: true;
};
export type Argument = { name: string; words?: readonly string[]; isOptional?: true; isPath?: true };

export type Command = {
  /** As it is typed: one word, or a group and a verb. */
  name: string;
  /** In a sentence without its full stop. */
  help: string;
  arguments?: readonly Argument[];
  options?: { readonly [name: string]: Option };
  /** What else there is to say: lines of the command's own help. */
  more?: string;
  /** Prints what is no document, and takes no --json. */
  isPlain?: true;
  /** Only what is run is loaded: the rest takes longer to load than the help takes to read. */
  load: () => Promise<Run>;
};

/** What was said: arguments by their place, options by their names. */
export type Call = {
  args: readonly string[];
  options: { readonly [name: string]: string | undefined };
  flags: ReadonlySet<string>;
};

/** A document for programs, lines for people, and the exit code if it is not 0. */
export type Answer = { json: unknown; text: readonly string[]; code?: number };
export type Run = (call: Call, world: World) => Promise<Answer | number>;

/** What a command may use; nothing of it is opened before it is asked for. */
export type World = {
  /** A line of standard output. */
  print: (line: string) => void;
  complain: (line: string) => void;
  /** Whoever follows prints as it comes: this for programs, that for people. */
  tell: (json: unknown, text: string) => void;
  isJson: boolean;
  screen: Screen;
  /** A bar on standard error, where that is a terminal. */
  progress: (title: string, told: (count: number) => string) => Progress;
  config: () => Promise<Config>;
  log: () => Promise<Logger>;
  facts: () => Promise<Facts>;
  client: () => Promise<Client>;
  /** Undefined where no key of it is known. */
  findClient: () => Promise<Client | undefined>;
  /** Where the Carillon is that is asked. */
  url: () => Promise<string>;
  /** Undefined where there is no terminal to ask at. */
  confirm: (question: string) => Promise<boolean | undefined>;
  /** All of standard input. */
  readInput: () => Promise<string>;
};

/** Where it is shown: a terminal, or something that is no good for colours and lines that change. */
export type Screen = {
  isTerminal: boolean;
  hasColour: boolean;
  columns: () => number;
  rows: () => number;
  write: (text: string) => void;
  /** Hears single keys until the answer is called; nothing where none can be typed. */
  onKey: (listener: (key: string) => void) => () => void;
};

export type Progress = { at: (done: number, total: number) => void; end: () => void };

/** Expected, and told in a sentence. */
export class Failure extends Error {
  override name = "Failure";
  readonly exitCode: number;
  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** How a command ended, for scripts. 64 and 78 are those of sysexits.h. */
export const EXIT = {
  done: 0,
  failed: 1,
  notFound: 3,
  refused: 4,
  usage: 64,
  configuration: 78,
} as const;
