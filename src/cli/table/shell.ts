// The command line about itself.

import type { Command } from "../command.ts";

export const SHELL: readonly Command[] = [
  {
    name: "completion",
    help: "what a shell needs to complete commands and options",
    arguments: [{ name: "SHELL", words: ["bash", "zsh"] }],
    more: `In bash:  source <(carillon completion bash)
In zsh:   source <(carillon completion zsh)
Put the line in ~/.bashrc or ~/.zshrc to have it in every shell.`,
    isPlain: true,
    load: async () => (await import("../completion.ts")).printCompletion,
  },
];
