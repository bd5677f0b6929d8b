// Room for what waits and what is under way, in rows and bytes, which owners share: whoever has much in it takes no room
// from others.

export type Room = {
  /** False when there is no room for it. */
  enter(owner: number, rows: number, bytes: number): boolean;
  leave(owner: number, rows: number, bytes: number): void;
  rows(): number;
};

/** What an owner has inside. */
type Part = { rows: number; bytes: number };

export function createRoom(maxRows: number, maxBytes: number): Room {
  const parts = new Map<number, Part>();
  let allRows = 0;
  let allBytes = 0;
  const fits = (rows: number, bytes: number, share: number): boolean =>
    rows <= maxRows * share && bytes <= maxBytes * share;

  return {
    /** Shares count once the room is full. Whoever has nothing inside yet gets in even then: the room is for those who have much. */
    enter(owner, rows, bytes) {
      if (!fits(rows, bytes, 1)) return false;
      const part = parts.get(owner) ?? { rows: 0, bytes: 0 };
      const isFull = !fits(allRows + rows, allBytes + bytes, 1);
      if (isFull && parts.has(owner) && !fits(part.rows + rows, part.bytes + bytes, 1 / parts.size)) return false;
      part.rows += rows;
      part.bytes += bytes;
      parts.set(owner, part);
      allRows += rows;
      allBytes += bytes;
      return true;
    },
    leave(owner, rows, bytes) {
      const part = parts.get(owner) as Part;
      part.rows -= rows;
      part.bytes -= bytes;
      if (part.rows === 0) parts.delete(owner);
      allRows -= rows;
      allBytes -= bytes;
    },
    rows: () => allRows,
  };
}
