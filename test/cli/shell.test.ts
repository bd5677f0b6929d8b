// The command line about itself: help, suggestions, completion, and how little it loads for that.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { Command } from "#cli/command.ts";
import { usageOf } from "#cli/help.ts";
import { nearest, slipsBetween } from "#cli/nearest.ts";
import { clean, paintOf } from "#cli/paint.ts";
import { optionsOf } from "#cli/parse.ts";
import { COMMANDS, GROUPS } from "#cli/table/groups.ts";
import { CHANNELS as COMPLETED } from "#cli/table/words.ts";
import { CHANNELS } from "#domain/notification.ts";
import { commandLine, toldBy } from "../support/command-line.ts";
import { debianProgram } from "../support/debian.ts";
import { sandboxFor } from "../support/process.ts";

const EX_USAGE = 64;
/** Nobody is asked. */
const run = commandLine({ url: "http://127.0.0.1:9", key: "nobody" });
const told = toldBy(run);
const src = join(import.meta.dirname, "..", "..", "src");

test("every command has a help of its own, with its arguments and options", async () => {
  for (const command of COMMANDS) {
    const { code, stdout } = await run(...command.name.split(" "), "--help");
    assert.equal(code, 0, command.name);
    assert.ok(stdout.startsWith(`carillon ${command.name}`), stdout);
    for (const { name } of command.arguments ?? []) assert.ok(stdout.includes(name), command.name);
    for (const option of Object.keys(optionsOf(command))) assert.match(stdout, new RegExp(`--${option}\\b`));
    assert.equal((await run("help", ...command.name.split(" "))).stdout, stdout);
  }
  const overview = await told("--help");
  for (const { name } of COMMANDS) assert.ok(overview.includes(`carillon ${name} `), name);
  assert.match(await told("help", "schedule"), /^ {2}carillon schedule ls [\s\S]*carillon schedule resume KEY/);
  const { commands, exitCodes } = JSON.parse(await told("help", "--json"));
  assert.deepEqual(
    commands.map(({ name }: { name: string }) => name),
    COMMANDS.map(({ name }) => name),
  );
  assert.deepEqual(exitCodes, { done: 0, failed: 1, notFound: 3, refused: 4, usage: EX_USAGE, configuration: 78 });
});

test("docs/cli.md lists every command as the table has it", () => {
  const file = join(src, "..", "docs", "cli.md");
  const page = readFileSync(file, "utf8");
  const cell = (command: Command) => usageOf(command).replaceAll("|", "\\|");
  const lists = GROUPS.map(({ title, commands }) =>
    [
      `### ${title}`,
      "",
      "| command | what it does |",
      "|---|---|",
      ...commands.map((command) => `| \`${cell(command)}\` | ${command.help} |`),
    ].join("\n"),
  );
  const start = page.indexOf(`### ${GROUPS[0]?.title}`);
  const written = `${page.slice(0, start)}${lists.join("\n\n")}\n`;
  if (process.env.CARILLON_WRITE) writeFileSync(file, written);
  else assert.equal(page, written, "CARILLON_WRITE=1 node test/run.ts test/cli/shell.test.ts writes it");
});

test("what is wrong is told in a sentence, with what was perhaps meant", async () => {
  const faults: [words: string[], says: RegExp][] = [
    [["shedule", "ls"], /^carillon: there is no command shedule ls: did you mean schedule\?\n/],
    [["schedule", "lst"], /there is no command schedule lst: did you mean schedule ls\?/],
    [["schedule"], /there is no command schedule alone: schedule ls, schedule next/],
    [["zzz"], /^carillon: there is no command zzz\n/],
    [["--jsno"], /there is no option --jsno/],
    [["audit", "--cuont", "3"], /audit has no option --cuont: did you mean --count\?/],
    [["audit", "--count"], /--count needs a value: --count N/],
    [["audit", "--count", "--since"], /--count needs a value/],
    [["audit", "--count", "0"], /--count must be a whole number, not 0/],
    [["audit", "--json=yes"], /--json takes no value/],
    [["pauses", "all"], /pauses takes no argument all/],
    [["reminder", "show"], /reminder show needs KEY/],
    [["pause", "channel", "sms"], /say why: --reason TEXT/],
    [["completion", "bsh"], /SHELL must be one of bash, zsh, not bsh: did you mean bash\?/],
    [["help", "dance"], /there is no command dance/],
    [["constructor"], /there is no command constructor/],
    [["audit", "--constructor"], /audit has no option --constructor/],
  ];
  for (const [words, says] of faults) {
    const { code, stdout, stderr } = await run(...words);
    assert.deepEqual([code, stdout], [EX_USAGE, ""], words.join(" "));
    assert.match(stderr, says);
    assert.match(stderr, /\nSee carillon .*--help\.\n$/);
  }
});

test("a slip is a letter left out, put in, changed, or swapped with its neighbour", () => {
  assert.deepEqual(
    [slipsBetween("tail", "tail"), slipsBetween("tial", "tail"), slipsBetween("tal", "tails")],
    [0, 1, 2],
  );
  assert.equal(nearest("sch", ["start", "schedule"]), "schedule");
  assert.equal(nearest("xyz", ["start", "schedule"]), undefined);
});

test("what others wrote cannot steer a terminal, and our own colours stay where there are any", () => {
  const evil = "a\u001b[2Jb\u001b]0;title\u0007c\nd\u009b31m\u202ee\u001b[8mf";
  const harmless = "a [2Jb ]0;title c d 31m e [8mf";
  assert.equal(clean(evil, false), harmless);
  assert.equal(clean(evil, true), harmless);
  const painted = paintOf({ hasColour: true })("red", "no\u001b[0m way");
  assert.equal(clean(painted, true), "\u001b[31mno way\u001b[0m");
  assert.equal(clean(painted, false), "no way");
  assert.equal(paintOf({ hasColour: false })("red", "plain"), "plain");
});

test("the words that are completed are those of the API", () => {
  assert.deepEqual([...COMPLETED], [...CHANNELS]);
});

test("a help starts with a few small files of the command line, and no package", () => {
  const loaded = new Set<string>();
  const visit = (file: string) => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const text = readFileSync(join(src, file), "utf8");
    for (const [, from = ""] of text.matchAll(/^(?:import|export) (?!type\b)[^;]*?from "([^"]+)";/gms)) {
      if (from.startsWith("node:")) continue;
      assert.match(from, /^[.#]/, `${file} loads ${from}`);
      visit(from.startsWith("#") ? from.slice(1) : join(dirname(file), from));
    }
  };
  visit("cli/carillon.ts");
  assert.ok(loaded.has("cli/table/groups.ts"), "the test follows imports");
  const others = [...loaded].filter((file) => !file.startsWith("cli/"));
  assert.deepEqual(others.sort(), [
    "client/error.ts",
    "config/version.ts",
    "domain/api-key.ts",
    "domain/handoff.ts",
    "domain/priority.ts",
    "domain/status.ts",
  ]);
});

/** What a shell offers for the last of some words, asked as the shell itself asks. */
const COMPLETES: [words: string[], offers: string[]][] = [
  [["sched"], ["schedule"]],
  [
    ["schedule", ""],
    ["ls", "next", "pause", "resume"],
  ],
  [["schedule", "n"], ["next"]],
  [
    ["schedule", "next", "--"],
    ["--count", "--json", "--help"],
  ],
  [["schedule", "next", "weekly", "--c"], ["--count"]],
  [
    ["refusals", "--kind", ""],
    ["source", "sink"],
  ],
  [["--json", "sink"], ["sinks"]],
  [
    ["sinks", "r"],
    ["resume", "replay"],
  ],
  [["pause", "channel", "sms", "--r"], ["--reason"]],
  [["audit", "--actor", "a"], []],
  [
    ["completion", ""],
    ["bash", "zsh", "--help"],
  ],
  [["help", "comp"], ["completion"]],
];

test("bash completes commands, options and values", async (t) => {
  const sandbox = await sandboxFor(t);
  const { stdout: script } = await sandbox.run(["completion", "bash"]);
  const file = join(sandbox.directory, "carillon.bash");
  writeFileSync(file, script);
  for (const [words, offers] of COMPLETES) {
    const asked = `source "$1"; shift
      [ "$(complete -p carillon)" = "complete -F _carillon carillon" ] || exit 9
      COMP_WORDS=(carillon "$@"); COMP_CWORD=$#; _carillon; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = spawnSync("bash", ["-uc", asked, "bash", file, ...words], { encoding: "utf8" });
    assert.deepEqual([status, stderr], [0, ""]);
    assert.deepEqual(
      stdout.split("\n").filter((word) => word !== ""),
      offers,
      words.join(" "),
    );
  }
});

/** All that it hands to zsh, which chooses those that fit. */
function askZsh(zsh: string, file: string, words: string[]): string[] {
  const asking = `compdef() { registered="$*" }; compadd() { shift; print -l -- "$@" }
    source "$1"; shift; [ "$registered" = "_carillon carillon" ] || exit 9
    words=(carillon "$@"); CURRENT=$#words; _carillon`;
  const { status, stdout, stderr } = spawnSync(zsh, ["-fc", asking, "zsh", file, ...words], { encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout.split("\n").filter((word) => word !== "");
}

test("zsh completes them too", async (t) => {
  const zsh = debianProgram("zsh", "/usr/bin/zsh");
  if (zsh === undefined) return t.skip("there is no zsh here, and it cannot be installed");
  const sandbox = await sandboxFor(t);
  const file = join(sandbox.directory, "carillon.zsh");
  writeFileSync(file, (await sandbox.run(["completion", "zsh"])).stdout);
  for (const [words, offers] of COMPLETES) {
    const fitting: string[] = askZsh(zsh, file, words).filter((word) => word.startsWith(words.at(-1) ?? ""));
    assert.deepEqual(fitting, offers, words.join(" "));
  }
});
