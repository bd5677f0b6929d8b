// Waits for something to come about, by looking. The limit is for a machine with every core busy many times over: whoever waits for what
// comes about at once loses nothing by it.

export async function until<Value>(look: () => Promise<Value | undefined>, mostMs = 60_000): Promise<Value> {
  const deadline = performance.now() + mostMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`it did not come about within ${mostMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
