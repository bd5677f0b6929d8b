// Positions are `<epoch>:<seq>`: how far a stream has come, or up to where a list reached.

/** Whether an event is news to whoever has the list. Another numbering is always news. */
export function isAfter(event: string | undefined, list: string | undefined): boolean {
  if (event === undefined || list === undefined) return true;
  const [epoch, seq] = event.split(":");
  const [listEpoch, listSeq] = list.split(":");
  return epoch !== listEpoch || Number(seq) > Number(listSeq);
}
