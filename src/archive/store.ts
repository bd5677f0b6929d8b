// Where archives are kept: a bucket, or a directory. Everything that archives asks for this, and nothing else.
//
// Objects are whole or not there: who reads one never finds half of it, whatever was killed while it was written. Nothing is ever changed:
// an object has a name that nobody else gives, or the same content. A store that is away, full or refusing throws ArchiveError, with
// words that may be shown; whoever asked tries again later.

import type { Readable } from "node:stream";

export type Stored = { key: string; bytes: number };

export type ArchiveStore = {
  /** What an operator knows it by. No secrets. */
  readonly place: string;
  /**
   * Kept when it answers, also through a power cut. With `ifAbsent` false where the key is taken, and then nothing is changed; a server
   * that does not know that condition overwrites.
   */
  put(key: string, content: Buffer, options: PutOptions): Promise<boolean>;
  /** Undefined where there is none. Errors come through the stream as well. */
  get(key: string): Promise<Readable | undefined>;
  /** How many bytes; undefined where there is none. */
  head(key: string): Promise<number | undefined>;
  /** Those whose keys begin so, in the order of their keys. */
  list(prefix: string): AsyncIterable<Stored>;
  close(): Promise<void>;
};

export type PutOptions = {
  /** Of the content, in hex. A store that finds another refuses it. */
  sha256: string;
  type: "application/gzip" | "application/json";
  ifAbsent: boolean;
};

/** The archive is away, or will not have it. */
export class ArchiveError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ArchiveError";
  }
}

/** What is there is not what was written: it stays so however often it is read. */
export class DamageError extends ArchiveError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DamageError";
  }
}
