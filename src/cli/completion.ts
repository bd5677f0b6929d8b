// carillon completion bash|zsh: written from the table of commands, so that both know what there is.

import { type Argument, type Command, EXIT, type Option, type Run } from "./command.ts";
import { optionsOf } from "./parse.ts";
import { COMMANDS } from "./table/groups.ts";

export const printCompletion: Run = async ({ args: [shell] }, world) => {
  world.print(shell === "zsh" ? zsh(COMMANDS) : bash(COMMANDS));
  return EXIT.done;
};

/** What may come after a command's words so far: verbs, words of its first argument, options. `FILES` stands for paths. */
type Choice = { after: string; words: readonly string[]; isPath: boolean };

const FIRST = ["help", "--help", "--version", "--json"];

export function choices(commands: readonly Command[]): Choice[] {
  const groups = new Map<string, string[]>();
  for (const { name } of commands) {
    const [group = "", verb] = name.split(" ");
    groups.set(group, [...(groups.get(group) ?? []), ...(verb === undefined ? [] : [verb])]);
  }
  const ofGroups = [...groups]
    .filter(([, verbs]) => verbs.length > 0)
    .map(([group, verbs]) => ({ after: group, words: verbs, isPath: false }));
  const ofCommands = commands.map((command) => {
    const [first] = command.arguments ?? [];
    const verbs = groups.get(command.name) ?? [];
    const words = [...verbs, ...wordsOf(first), ...Object.keys(optionsOf(command)).map((name) => `--${name}`)];
    return { after: command.name, words, isPath: first?.isPath === true };
  });
  const named = new Set(ofCommands.map(({ after }) => after));
  return [
    { after: "", words: [...groups.keys(), ...FIRST], isPath: false },
    { after: "help", words: [...groups.keys()], isPath: false },
    ...ofGroups.filter(({ after }) => !named.has(after)),
    ...ofCommands,
  ];
}

/** What may be the value of an option: nothing is offered for free text. */
function values(commands: readonly Command[]): Choice[] {
  return commands.flatMap((command) =>
    Object.entries(command.options ?? {})
      .filter(([, { value }]) => value !== undefined)
      .map(([name, option]) => ({
        after: `${command.name} --${name}`,
        words: wordsOf(option),
        isPath: option.isPath === true,
      })),
  );
}

const wordsOf = (of: Option | Argument | undefined): readonly string[] => of?.words ?? [];

const line = ({ after, words, isPath }: Choice): string =>
  `    "${after}") offered="${words.join(" ")}"${isPath ? "; files=1" : ""} ;;`;

/** The words so far without options and their values: a command has two at most. */
const groupsOf = (commands: readonly Command[]): string =>
  [...new Set(commands.filter(({ name }) => name.includes(" ")).map(({ name }) => name.split(" ")[0]))].join("|");

/** What both shells share: `said` are the words before the one to be completed, `last` the one before it. */
const finding = (commands: readonly Command[]): string => `
  local name="" word offered="" files=""
  for word in "\${said[@]}"; do
    case "$word" in
      -*) [ -n "$name" ] && break ;;
      *) case "$name" in
           "") name="$word" ;;
           ${groupsOf(commands)}) name="$name $word"; break ;;
           *) break ;;
         esac ;;
    esac
  done
  case "$name" in
${choices(commands).map(line).join("\n")}
    *) # A group with another word, such as the argument of sources.
      name="\${name%% *}" ;;
  esac
  case "$name $last" in
${values(commands).map(line).join("\n")}
  esac`;

const bash = (commands: readonly Command[]): string => `# bash completion for carillon
_carillon() {
  local current="\${COMP_WORDS[COMP_CWORD]}" last="\${COMP_WORDS[COMP_CWORD-1]}"
  local -a said=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")${finding(commands)}
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  if [ -n "$files" ] && [[ "$current" != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _carillon carillon`;

/** Sourced, or found by zsh in its fpath. */
const zsh = (commands: readonly Command[]): string => `#compdef carillon
_carillon() {
  setopt localoptions noksharrays
  local last="\${words[CURRENT-1]}"
  local -a said=("\${(@)words[2,CURRENT-1]}")${finding(commands)}
  [ -n "$offered" ] && compadd -- \${=offered}
  [ -n "$files" ] && _files
  return 0
}
if [ "\${funcstack[1]}" = _carillon ]; then
  _carillon "$@"
elif whence compdef >/dev/null; then
  compdef _carillon carillon
fi`;
