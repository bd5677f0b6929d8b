// What was answered last to the requests that a signal ends: for whoever writes down what went wrong with a send. A client of ours leaves it here
// whatever the provider makes of it; it is forgotten with the signal.

export type Heard = { status: number; text: string };

const answers = new WeakMap<AbortSignal, Heard>();

export const hear = (signal: AbortSignal, { status, text }: Heard): void => void answers.set(signal, { status, text });

export const heardBy = (signal: AbortSignal): Heard | undefined => answers.get(signal);
