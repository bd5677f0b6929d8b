// Loaded before a process under test: changes one source file as it is read. See mutations.ts.

import { registerHooks } from "node:module";
import { BROKER_MUTATIONS, type BrokerMutant } from "./brokers/mutations.ts";
import { MUTATED, MUTATIONS, type Mutant, mutate } from "./mutations.ts";

const mutation = { ...MUTATIONS, ...BROKER_MUTATIONS }[process.env.CHAOS_MUTANT as Mutant | BrokerMutant];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith(`/${mutation.file}`)) return loaded;
    const source = mutate(mutation, String(loaded.source));
    process.stdout.write(`${MUTATED}${mutation.file}\n`);
    return { ...loaded, source };
  },
});
