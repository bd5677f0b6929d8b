// What was opened or started, to be closed and stopped.

export type Stop = () => Promise<void>;

/** What was opened last is closed first. */
export async function unwind(undo: Stop[]): Promise<void> {
  for (let stop = undo.pop(); stop; stop = undo.pop()) await stop();
}

/** All at once: each of them begins to stop now. */
export async function stopTogether(loops: Stop[]): Promise<void> {
  await Promise.all(loops.splice(0).map((stop) => stop()));
}
