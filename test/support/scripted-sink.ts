// A sink that does what a test says, and notes what it was handed.

import type { Refused, Sink, Told } from "#sinks/sink.ts";

export type Deliver = (facts: readonly Told[], signal: AbortSignal) => Promise<readonly Refused[]>;
export type ScriptedSink = Sink & {
  /** Every page that was handed over, confirmed or not. */
  pages: (readonly Told[])[];
  /** Facts of pages that were confirmed, by notification and number, in order. */
  confirmed: string[];
  /** How pages are answered from now on. */
  answer(deliver: Deliver): void;
};

export const nameOf = ({ fact: { notificationId, number } }: Told): string => `${notificationId}:${number}`;

/** It takes all it is given, unless a test says otherwise. */
export function scriptedSink(most = 100): ScriptedSink {
  let deliver: Deliver = async () => [];
  const pages: (readonly Told[])[] = [];
  const confirmed: string[] = [];
  return {
    most,
    pages,
    confirmed,
    answer(next) {
      deliver = next;
    },
    async deliver(facts, signal) {
      pages.push(facts);
      const refused = await deliver(facts, signal);
      confirmed.push(...facts.filter((told) => !refused.some((one) => one.told === told)).map(nameOf));
      return refused;
    },
    async close() {},
  };
}

/** Until the signal says so it waits. */
export const hang: Deliver = (_facts, signal) =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** A page that waits until the test lets it go; `entered` when it has come. */
export function gate(): { deliver: Deliver; entered: Promise<AbortSignal>; open: () => void } {
  let enter: (signal: AbortSignal) => void = () => {};
  let open: () => void = () => {};
  const entered = new Promise<AbortSignal>((resolve) => {
    enter = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    entered,
    open,
    async deliver(_facts, signal) {
      enter(signal);
      await opened;
      return [];
    },
  };
}
