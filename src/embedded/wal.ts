// Names of the files of PostgreSQL's log: a timeline, and a number that grows with what is written.

import { readdir } from "node:fs/promises";
import { EmbeddedError } from "./postgres-binaries.ts";

/** A position in the log, as bytes from its beginning. */
const bytesOf = (lsn: string): bigint => {
  const [high = "0", low = "0"] = lsn.split("/");
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
};

/** From the one that the label names to the one that has the last byte before `stopLsn`. */
export function logFilesBetween(label: string, stopLsn: string, segmentBytes: number): string[] {
  const [, lsn, timeline] = /^START WAL LOCATION: ([0-9A-F/]+) \(file ([0-9A-F]{8})[0-9A-F]{16}\)/.exec(label) ?? [];
  if (!timeline || !lsn) throw new EmbeddedError("PostgreSQL's backup label says nothing that we know.");
  const size = BigInt(segmentBytes);
  const perLog = 0x1_0000_0000n / size;
  const hex = (value: bigint) => value.toString(16).toUpperCase().padStart(8, "0");
  const names: string[] = [];
  for (let n = bytesOf(lsn) / size; n <= (bytesOf(stopLsn) - 1n) / size; n++) {
    names.push(`${timeline}${hex(n / perLog)}${hex(n % perLog)}`);
  }
  return names;
}

/** These, and what tells of former timelines. */
export const logFiles = async (directory: string, names: readonly string[]): Promise<string[]> => [
  ...(await readdir(directory)).filter((name) => /^[0-9A-F]{8}\.history$/.test(name)),
  ...names,
];
