// One command, from its words to its exit code.

import { VERSION } from "#config/version.ts";
import { EXIT, type World } from "./command.ts";
import { describe, helpOf, helpOfGroup, overview } from "./help.ts";
import { clean } from "./paint.ts";
import { type Parsed, parse } from "./parse.ts";
import { COMMANDS } from "./table/groups.ts";

/** Throws what a command throws. */
export async function runCommand(args: readonly string[], worldOf: (isJson: boolean) => World): Promise<number> {
  const parsed = parse(args, COMMANDS);
  switch (parsed.kind) {
    case "version":
      worldOf(false).print(VERSION);
      return EXIT.done;
    case "help":
      worldOf(parsed.isJson).print(helpFor(parsed));
      return EXIT.done;
    case "fault": {
      const { complain } = worldOf(false);
      const more = parsed.command ? `carillon ${parsed.command.name} --help` : "carillon --help";
      complain(args.length === 0 ? overview(VERSION) : `carillon: ${parsed.message}\nSee ${more}.`);
      return EXIT.usage;
    }
    case "run": {
      const world = worldOf(parsed.isJson);
      const run = await parsed.command.load();
      const answer = await run(parsed.call, world);
      if (typeof answer === "number") return answer;
      const { json, text, code = EXIT.done } = answer;
      if (!parsed.isJson) for (const line of text) world.print(clean(line, world.screen.hasColour));
      else if (json !== undefined) world.print(JSON.stringify(json, undefined, 2));
      return code;
    }
  }
}

function helpFor({ command, words, isJson }: Extract<Parsed, { kind: "help" }>): string {
  const [group] = words;
  const isMeant = ({ name }: { name: string }) => group === undefined || name === group || name.startsWith(`${group} `);
  if (isJson) {
    const meant = command ? [command] : COMMANDS.filter(isMeant);
    return JSON.stringify({ version: VERSION, exitCodes: EXIT, commands: meant.map(describe) }, undefined, 2);
  }
  if (command) return helpOf(command);
  return group === undefined ? overview(VERSION) : helpOfGroup(group, COMMANDS);
}
