// What commands are given to work with. Each part is opened when it is first asked for, and once.

import type { Client } from "#client/client.ts";
import type { Config } from "#config/read.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { Logger } from "#telemetry/log.ts";
import { EXIT, Failure, type Screen, type World } from "./command.ts";
import { clean } from "./paint.ts";
import { showProgress } from "./progress.ts";

export type Surroundings = {
  env: { readonly [name: string]: string | undefined };
  cwd: string;
  isJson: boolean;
  output: NodeJS.WriteStream;
  errors: NodeJS.WriteStream;
  input: NodeJS.ReadStream;
};

export function createWorld({ env, cwd, isJson, output, errors, input }: Surroundings): World {
  const print = (line: string): void => void output.write(`${line}\n`);
  const config = once(async (): Promise<Config> => (await import("#config/read.ts")).readConfig({ env, cwd }));
  const log = once(async (): Promise<Logger> => {
    const [{ FORMER_NAME, unknownVariables }, { createLog }] = await Promise.all([
      import("#config/read.ts"),
      import("#telemetry/log.ts"),
    ]);
    const { logLevel, formerNames } = await config();
    const made = createLog(logLevel, errors);
    for (const name of unknownVariables(env)) made.warn({ name }, "unknown environment variable, perhaps misspelt");
    for (const names of formerNames) made.warn(names, FORMER_NAME);
    return made;
  });
  const facts = once(async (): Promise<Facts> => {
    const [{ Facts: Telling }, { createLog }] = await Promise.all([
      import("#telemetry/facts.ts"),
      import("#telemetry/log.ts"),
    ]);
    return new Telling(createLog((await config()).logLevel, errors));
  });
  const place = once(() => findPlace(env, config));
  const findClient = once(async (): Promise<Client | undefined> => {
    const { url, key } = await place();
    if (key === undefined) return undefined;
    return (await import("#client/client.ts")).createClient({ url, key, maxAttempts: 2 });
  });
  const screen = screenOf(output, input, env);
  return {
    print,
    complain: (line) => void errors.write(`${line}\n`),
    tell: (json, text) => print(isJson ? JSON.stringify(json) : clean(text, screen.hasColour)),
    isJson,
    screen,
    progress: (title, told) => showProgress(isJson ? undefined : errors, title, told),
    config,
    log,
    facts,
    findClient,
    async client() {
      const client = await findClient();
      if (client) return client;
      throw new Failure("set CARILLON_API_KEY to a key of the Carillon that is asked", EXIT.configuration);
    },
    url: async () => (await place()).url,
    async confirm(question) {
      if (!input.isTTY || !errors.isTTY) return undefined;
      const { createInterface } = await import("node:readline/promises");
      const lines = createInterface({ input, output: errors });
      return (await lines.question(question).finally(() => lines.close())).trim().toLowerCase() === "yes";
    },
    async readInput() {
      const parts: Buffer[] = [];
      for await (const part of input) parts.push(Buffer.from(part));
      return Buffer.concat(parts).toString();
    },
  };
}

/** Where it says both, the configuration is not needed, and a Carillon elsewhere has another. */
async function findPlace(
  env: Surroundings["env"],
  config: () => Promise<Config>,
): Promise<{ url: string; key: string | undefined }> {
  const { CARILLON_URL: given, CARILLON_API_KEY: givenKey } = env;
  const read = given && givenKey ? undefined : await config();
  const url = given || `http://${read?.host}:${read?.port}`;
  if (!URL.canParse(url) || !/^https?:/i.test(url)) {
    throw new Failure("CARILLON_URL must be an http or https URL", EXIT.configuration);
  }
  const key = read ? read.apiKey : givenKey;
  if (key !== undefined && !/^[!-~]+$/.test(key)) {
    throw new Failure("CARILLON_API_KEY must be printable characters without spaces", EXIT.configuration);
  }
  return { url, key };
}

function screenOf(output: NodeJS.WriteStream, input: NodeJS.ReadStream, env: Surroundings["env"]): Screen {
  const isTerminal = output.isTTY === true;
  return {
    isTerminal,
    // https://no-color.org: set to anything but nothing.
    hasColour: isTerminal && !env.NO_COLOR && env.TERM !== "dumb",
    columns: () => output.columns || 80,
    rows: () => output.rows || 24,
    write: (text) => void output.write(text),
    onKey(listener) {
      if (!input.isTTY) return () => {};
      const hear = (keys: Buffer) => {
        for (const key of keys.toString()) listener(key);
      };
      input.setRawMode(true).on("data", hear).resume();
      return () => void input.setRawMode(false).off("data", hear).pause();
    },
  };
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
