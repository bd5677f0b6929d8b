// Loaded before a worker process under test: changes one source file as it is read. See mutations.ts.

import { registerHooks } from "node:module";
import { MUTATED, MUTATIONS, type Mutant } from "./mutations.ts";

const { file, from, to } = MUTATIONS[process.env.CHAOS_MUTANT as Mutant];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith(`/${file}`)) return loaded;
    const source = String(loaded.source);
    if ([...source.matchAll(new RegExp(from, "g"))].length !== 1)
      throw new Error(`the mutant finds its text not once in ${file}`);
    process.stdout.write(`${MUTATED}${file}\n`);
    return { ...loaded, source: source.replace(from, to) };
  },
});
