// Serving thousands without making anybody else wait.

/** Served before other work gets its turn. */
export const SLICE = 100;

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** `act` answers whether it was any work. */
export async function inSlices<One>(all: Iterable<One>, act: (one: One) => boolean): Promise<void> {
  let done = 0;
  for (const one of [...all]) {
    if (act(one) && ++done % SLICE === 0) await turn();
  }
}
