// Loaded before anything else, it makes a process's own clock wrong by SHIFT_MS. The monotonic clock goes on as it was.

const shiftMs = Number(process.env.SHIFT_MS);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    // @ts-expect-error: a Date takes what it takes
    super(...(given.length === 0 ? [RealDate.now() + shiftMs] : given));
  }
  static override now(): number {
    return RealDate.now() + shiftMs;
  }
} as DateConstructor;
