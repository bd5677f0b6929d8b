// Who waits in hand for a place at a way: those do not stand in the way of what goes elsewhere.
//
// They wait in the same order as everybody, a line per way, and another for receivers that have not answered lately. When a place is free
// the next comes back to the front of its tenant's line. Who would wait for long is sent away, unspent, to an instant of its own.
// State: the lines, and the slots of sends to such receivers.

import { rankOf } from "#domain/priority.ts";
import { MOST_WAIT_MS } from "#guards/away.ts";
import { Passage } from "#guards/passage.ts";
import type { Sender, Slots } from "./slots.ts";
import type { Ready } from "./starts.ts";
import { Turns } from "./turns.ts";
import { Unproven } from "./unproven.ts";

export type WaysOptions = {
  slots: Slots;
  monotonic: () => number;
  /** Back to the front of its tenant's line. */
  comeBack: (one: Ready) => void;
  sendAway: (one: Ready, waitMs: number) => void;
  /** Somebody who goes another way waits for a slot. */
  isWanted: (except: Passage) => boolean;
};

/** What goes to a receiver waits no longer than this for a slot that somebody else waits for too; and for a place among those that have not answered lately. */
const CROWDED_MS = 500;
const UNPROVEN_MS = 4_000;
/** While anybody waits here it is seen this often who hangs, and who has waited for long enough. */
export const SEEN_MS = 50;

export class Ways {
  readonly #options: WaysOptions;
  readonly #unproven: Unproven;
  readonly #lines = new Map<Passage | Unproven, Turns<Ready>>();

  constructor(options: WaysOptions) {
    this.#options = options;
    this.#unproven = new Unproven(options.slots.general, options.monotonic);
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Nobody passes those of its own tenant and lane who wait; the others have their turns before they come here. */
  hasPlace(one: Ready): boolean {
    const { rank, share, passage } = one;
    if (!passage || passage.isShut) return true;
    if (!passage.hasPlace(rank) || this.#isBehind(one, passage)) return false;
    return passage.isProven || (this.#unproven.hasPlace(share) && !this.#isBehind(one, this.#unproven));
  }

  take(one: Ready): void {
    const { passage } = one;
    if (!passage) return;
    if (!passage.isProven) this.#unproven.take(one);
    passage.take();
  }

  free(one: Sender): void {
    const { passage } = one;
    if (!passage) return;
    passage.free();
    const wasUnproven = passage.isReceiver && this.#unproven.leave(one);
    if (this.#lines.size === 0) return;
    if (wasUnproven) this.#callBack(this.#unproven);
    this.#callBack(passage);
  }

  /** One whose turn it was, and for which there is no place. */
  park(one: Ready): void {
    const { passage, attempt, rank } = one;
    if (!passage) throw new Error("only who goes a way waits for it");
    const isFull = !passage.hasPlace(rank);
    const key = isFull || passage.isProven ? passage : this.#unproven;
    const line = this.#lines.get(key);
    const awayMs = isFull
      ? passage.awayMs(attempt, line?.size ?? 0, this.#waitedMs(one))
      : this.#isCrowded(one) && passage.laterMs();
    if (awayMs) {
      this.#options.sendAway(one, awayMs);
      return;
    }
    one.parkedAt ??= this.#options.monotonic();
    const joined = line ?? new Turns<Ready>();
    if (!line) this.#lines.set(key, joined);
    if (one.isBack) joined.putBack(one);
    else joined.add(one);
    one.isBack = false;
  }

  /** Sends away who has waited for long enough or waits for one that hangs, and calls those for whom there is room after all. */
  see(): void {
    const { sendAway } = this.#options;
    for (const [key, line] of this.#lines) {
      let ahead = 0;
      const waits: number[] = [];
      const away = line.take((one) => {
        const ms = this.#awayMs(key, one, ahead);
        if (ms === 0) ahead++;
        else waits.push(ms);
        return ms > 0;
      });
      for (const [n, one] of away.entries()) sendAway(one, waits[n] ?? 0);
      const count = key instanceof Passage ? Number(key.hasPlace(rankOf.low)) : key.free;
      for (let n = 0; n < count; n++) this.#callBack(key);
      if (line.size === 0) this.#lines.delete(key);
    }
  }

  takeOut(isOver: (one: Ready) => boolean): Ready[] {
    const taken: Ready[] = [];
    for (const [key, line] of this.#lines) {
      taken.push(...line.take(isOver));
      if (line.size === 0) this.#lines.delete(key);
    }
    return taken;
  }

  #awayMs(key: Passage | Unproven, one: Ready, ahead: number): number {
    const waitedMs = this.#waitedMs(one);
    const { passage } = one;
    if (!passage) return 0;
    if (key !== passage) return waitedMs < UNPROVEN_MS ? 0 : passage.laterMs();
    if (!passage.hasPlace(one.rank)) return passage.awayMs(one.attempt, ahead, waitedMs);
    // A place that is free for a moment, until the next has come to it, is no lack of slots.
    if (this.#options.slots.judge(one) === "go") return 0;
    return passage.isReceiver && this.#isTooLong(one, passage, waitedMs) ? passage.laterMs() : 0;
  }

  /** For a slot. Where nobody else needs the room, who is sent away makes none: it comes back no sooner than it would have had its turn. */
  #isTooLong({ share }: Ready, passage: Passage, waitedMs: number): boolean {
    if (waitedMs < CROWDED_MS) return false;
    if (!this.#isWanted(passage)) return waitedMs > MOST_WAIT_MS;
    share.crowdedUntil = this.#options.monotonic() + CROWDED_MS;
    return true;
  }

  #isWanted(except: Passage): boolean {
    for (const key of this.#lines.keys()) if (key !== except) return true;
    return this.#options.isWanted(except);
  }

  #isBehind(one: Ready, key: Passage | Unproven): boolean {
    return this.#lines.size > 0 && !one.isBack && this.#lines.get(key)?.has(one) === true;
  }

  #isCrowded({ passage, share }: Ready): boolean {
    return passage?.isReceiver === true && share.crowdedUntil > this.#options.monotonic();
  }

  #waitedMs({ parkedAt }: Ready): number {
    return parkedAt === undefined ? 0 : this.#options.monotonic() - parkedAt;
  }

  /** The next whose tenant may begin another; the others go on waiting. */
  #callBack(key: Passage | Unproven): void {
    const line = this.#lines.get(key);
    if (!line) return;
    const one = line.next((next) => (this.#options.slots.judgeTenant(next) === "tenant" ? "tenant" : "go"));
    if (line.size === 0) this.#lines.delete(key);
    if (!one) return;
    one.isBack = true;
    this.#options.comeBack(one);
  }
}
