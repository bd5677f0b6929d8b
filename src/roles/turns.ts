// Who is next of those who wait: the higher lane first; within a lane tenants take turns, as many at a time as their weight; within
// a tenant first in, first out.
//
// A tenant that may not begin another stands aside until something of it ends, so that nobody looks past it with every pick. Those
// aside are asked again, a few at a time, when nobody else is left: others may have made room.
// State: a line per lane and tenant, and which of them stand aside.

import { CALLBACK_RANK, RANKS } from "#domain/priority.ts";
import type { Share } from "./share.ts";

/** Whether one may begin now; if not, what it waits for. */
export type Verdict = "go" | "slot" | "tenant" | "way";

export type Waiter = { readonly rank: number; readonly share: Share };
/** `order` is its number among all that have come, which it keeps in whatever line it waits. */
type Numbered = Waiter & { readonly order: number };

type Line<One> = { share: Share; ones: One[]; next: number; turns: number };
type Lane<One> = { going: Map<Share, Line<One>>; aside: Map<Share, Line<One>> };

/** Of those aside, in one pick. */
const MOST_ASKED = 8;

export class Turns<One extends Numbered> {
  readonly #lanes: readonly Lane<One>[] = [...RANKS, CALLBACK_RANK].map(() => ({
    going: new Map(),
    aside: new Map(),
  }));
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(one: One): void {
    const { going, aside } = this.#lane(one.rank);
    const line = going.get(one.share) ?? aside.get(one.share);
    if (line) line.ones.push(one);
    else going.set(one.share, { share: one.share, ones: [one], next: 0, turns: one.share.weight });
    this.#size++;
  }

  /** Somebody of that tenant and lane waits here. */
  has({ rank, share }: Waiter): boolean {
    const { going, aside } = this.#lane(rank);
    return going.has(share) || aside.has(share);
  }

  /** One of those who wait is such a one. */
  some(isOne: (one: One) => boolean): boolean {
    for (const { going, aside } of this.#lanes)
      for (const lines of [going, aside])
        for (const { ones, next } of lines.values())
          for (let n = next; n < ones.length; n++) if (isOne(ones[n] as One)) return true;
    return false;
  }

  /** One that stood first before, and so perhaps did others who are back: they are first by when they came. */
  putBack(one: One): void {
    const { going, aside } = this.#lane(one.rank);
    const line = going.get(one.share) ?? aside.get(one.share);
    if (!line) {
      this.add(one);
      return;
    }
    const { ones } = line;
    let at = line.next;
    while (at < ones.length && (ones[at] as One).order < one.order) at++;
    if (at === line.next && at > 0) ones[--line.next] = one;
    else ones.splice(at, 0, one);
    this.#size++;
  }

  /** Takes out the next that may go, and before it those that wait for their ways: `stepOut` gets these. */
  next(judge: (one: One) => Verdict, stepOut?: (one: One) => void): One | undefined {
    if (this.#size === 0) return undefined;
    for (const lane of this.#lanes) {
      let asked = 0;
      while (lane.going.size > 0 || lane.aside.size > 0) {
        const isAside = lane.going.size === 0;
        if (isAside && asked++ === MOST_ASKED) break;
        const line = firstOf(isAside ? lane.aside : lane.going);
        const one = line.ones[line.next] as One;
        const verdict = judge(one);
        // No slot for this lane is none for those below it.
        if (verdict === "slot") return undefined;
        if (verdict === "tenant") {
          standAside(lane, line);
          continue;
        }
        if (isAside) comeBack(lane, line);
        this.#takeFirst(lane, line);
        if (verdict === "way") {
          stepOut?.(one);
          continue;
        }
        takeTurn(lane, line);
        return one;
      }
    }
    return undefined;
  }

  /** Something of it has ended. */
  recall(share: Share): void {
    for (const lane of this.#lanes) {
      const line = lane.aside.size > 0 && lane.aside.get(share);
      if (line) comeBack(lane, line);
    }
  }

  /** Takes out all that are no longer to wait, in the order of their lines. */
  take(isOver: (one: One) => boolean): One[] {
    const taken: One[] = [];
    for (const lane of this.#lanes) {
      for (const line of [...lane.going.values(), ...lane.aside.values()]) {
        const kept: One[] = [];
        for (const one of line.ones.slice(line.next)) (isOver(one) ? taken : kept).push(one);
        line.ones = kept;
        line.next = 0;
        if (kept.length === 0) leave(lane, line);
      }
    }
    this.#size -= taken.length;
    return taken;
  }

  #lane(rank: number): Lane<One> {
    return this.#lanes[rank] as Lane<One>;
  }

  #takeFirst(lane: Lane<One>, line: Line<One>): void {
    line.next++;
    this.#size--;
    if (line.next === line.ones.length) leave(lane, line);
    else if (line.next === COMPACTED) {
      line.ones.splice(0, COMPACTED);
      line.next = 0;
    }
  }
}

/** What has been taken out of a line is forgotten so many at a time. */
const COMPACTED = 256;

const firstOf = <One>(lines: Map<Share, Line<One>>): Line<One> => lines.values().next().value as Line<One>;

function leave<One>({ going, aside }: Lane<One>, { share }: Line<One>): void {
  going.delete(share);
  aside.delete(share);
}

/** Last of those aside. */
function standAside<One>(lane: Lane<One>, line: Line<One>): void {
  leave(lane, line);
  lane.aside.set(line.share, line);
}

function comeBack<One>({ going, aside }: Lane<One>, line: Line<One>): void {
  aside.delete(line.share);
  going.set(line.share, line);
}

/** It has gone: once that was as often as it weighs, the next is first. */
function takeTurn<One>({ going }: Lane<One>, line: Line<One>): void {
  if (--line.turns > 0 || going.size < 2) return;
  line.turns = line.share.weight;
  if (going.delete(line.share)) going.set(line.share, line);
}
