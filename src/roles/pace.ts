// How many attempts ended per second, over the last few seconds.

const WINDOW_MS = 2_000;
const LEAST_MS = 100;

export class Pace {
  readonly #monotonic: () => number;
  #windowStart: number;
  #counted = 0;
  #last = 0;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
    this.#windowStart = monotonic();
  }

  count(): void {
    this.#counted++;
  }

  perSecond(): number {
    this.#roll();
    const passed = Math.max(LEAST_MS, this.#monotonic() - this.#windowStart);
    return Math.max(this.#last, (this.#counted * 1000) / passed);
  }

  #roll(): void {
    const passed = this.#monotonic() - this.#windowStart;
    if (passed < WINDOW_MS) return;
    this.#last = (this.#counted * 1000) / passed;
    this.#counted = 0;
    this.#windowStart = this.#monotonic();
  }
}
