// What does not compile: each step takes the type of the one before it. `npm run types` fails if one of these lines is
// accepted, since nothing is then expected in vain. Nothing here is ever run.

import { type Claimed, type Ended, handedBack, type Swept } from "#domain/attempt.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { guard } from "#steps/walk/guard.ts";
import { type Prepared, prepare } from "#steps/walk/prepare.ts";
import { send } from "#steps/walk/send.ts";
import { type Settled, settle } from "#steps/walk/settle.ts";
import { tell } from "#steps/walk/tell.ts";
import type { Slot, World } from "#steps/walk/world.ts";

declare const claimed: Claimed;
declare const prepared: Prepared;
declare const swept: Swept;
declare const ended: Ended;
declare const settled: Settled;
declare const slot: Slot;
declare const world: World;

export function everyStepInItsOrder(): void {
  void prepare([claimed], world);
  guard(prepared, 0, world);
  void send(prepared, slot, world);
  void deliver(prepared, slot, world);
  void settle(ended, world.settlements);
  tell(settled, world);
}

export function whatIsNotPreparedIsNotSent(): void {
  // @ts-expect-error: nobody looked at it
  void deliver(claimed, slot, world);
  // @ts-expect-error: nobody looked at it
  void send(claimed, slot, world);
  // @ts-expect-error: nobody looked at it
  guard(claimed, 0, world);
  // @ts-expect-error: with what looking at it would have found, but nobody has
  void deliver({ ...claimed, devices: [] }, slot, world);
}

export function whatIsNoLongerOursIsNotSent(): void {
  const back = handedBack(claimed);
  // @ts-expect-error: it was handed back
  void deliver(back, slot, world);
  // @ts-expect-error: it was handed back
  void prepare([back], world);
  // @ts-expect-error: it was somebody else's, and may have been sent
  void prepare([swept], world);
  // @ts-expect-error: it was somebody else's, and may have been sent
  void deliver(swept, slot, world);
  // @ts-expect-error: it has ended
  void deliver(ended, slot, world);
  // @ts-expect-error: it is settled
  void deliver(settled, slot, world);
}

export function onlyWhatEndedIsSettledAndOnlyWhatIsSettledIsTold(): void {
  // @ts-expect-error: nobody knows what came of it
  void settle(prepared, world.settlements);
  // @ts-expect-error: it may have been lost
  tell(ended, world);
  // @ts-expect-error: nothing was even begun
  tell(prepared, world);
}
