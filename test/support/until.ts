// Waits for something to come about, by looking.

export async function until<Value>(look: () => Promise<Value | undefined>, mostMs = 20_000): Promise<Value> {
  const deadline = performance.now() + mostMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`it did not come about within ${mostMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
