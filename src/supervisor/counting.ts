// Asks all processes for their figures and puts them together. Those who ask at the same time share one look.
//
// A process that does not answer in time is shown as it last was. State: the look under way, and who has not answered it.

import type { ProcessFigures } from "#telemetry/siblings.ts";
import type { Child } from "./child.ts";
import { createFigures } from "./figures.ts";
import type { FromProcess } from "./messages.ts";

type Counted = Extract<FromProcess, { kind: "counted" | "uncounted" }>;
type Look = { ask: number; waiting: Set<number>; done: () => void; fail: (error: Error) => void };

/** A scrape has ten seconds, unless told otherwise. */
const PATIENCE_MS = 3_000;

export class Counting {
  readonly #figures = createFigures();
  readonly #own: () => Promise<ProcessFigures>;
  #look: Look | undefined;
  #underWay: Promise<string> | undefined;
  #asks = 0;

  constructor(own: () => Promise<ProcessFigures>) {
    this.#own = own;
  }

  ofAll(children: readonly Child[]): Promise<string> {
    this.#underWay ??= this.#count(children).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  hear({ number }: Child, counted: Counted): void {
    const look = this.#look?.ask === counted.ask ? this.#look : undefined;
    if (counted.kind === "uncounted") look?.fail(new Error(`process ${number}: ${counted.fault}`));
    else {
      this.#figures.say(number, counted.figures);
      if (look) this.#answered(number);
    }
  }

  /** That process is gone: what it had counted stays counted. */
  leave(number: number): void {
    this.#figures.leave(number);
    this.#answered(number);
  }

  async #count(children: readonly Child[]): Promise<string> {
    const ask = ++this.#asks;
    let tooLong: NodeJS.Timeout | undefined;
    const answered = new Promise<void>((done, fail) => {
      tooLong = setTimeout(done, PATIENCE_MS);
      this.#look = { ask, waiting: new Set(children.map(({ number }) => number)), done, fail };
      for (const child of children) child.tell({ kind: "count", ask });
    });
    await answered.finally(() => {
      clearTimeout(tooLong);
      this.#look = undefined;
    });
    return this.#figures.text(await this.#own());
  }

  #answered(number: number): void {
    const look = this.#look;
    look?.waiting.delete(number);
    if (look?.waiting.size === 0) look.done();
  }
}
