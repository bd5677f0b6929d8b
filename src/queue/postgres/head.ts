// Where the lane with the backlog begins.
//
// Somebody's open transaction keeps all that was claimed since in a lane's index, and a claim that looks from the start walks past
// it. So where claims come back full, one looks into the lane in which that before it ended from where that found its first. What
// came back to this lane or was committed late may be behind that: a look from the start finds it, after HEAD_MS or as
// soon as a claim is not full. All other lanes are looked at from their start, so that priorities hold.

export type Head = { rank: number; seq: number };

export type Backlog = {
  /** From where to look now; undefined is the start. */
  head(now: number): Head | undefined;
  /** What a look from there found; undefined if it was not full. */
  found(from: Head | undefined, now: number, first: Head | undefined): void;
};

const HEAD_MS = 200;

export function createBacklog(): Backlog {
  let head: Head | undefined;
  let until = 0;
  return {
    head(now) {
      if (now >= until) head = undefined;
      return head;
    },
    found(from, now, first) {
      if (!from) until = now + HEAD_MS;
      head = first;
    },
  };
}
