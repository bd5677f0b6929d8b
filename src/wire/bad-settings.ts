// What is found wrong with a provider's settings when it is opened, beyond what their shape tells: a key that is none, an address
// that is none. Values are never repeated, since most are secrets.

import type { Fault } from "#domain/problems.ts";

export class BadSettings extends Error {
  readonly faults: readonly Fault[];

  constructor(provider: string, faults: readonly Fault[]) {
    super(`provider ${provider}: ${faults.map(inWords).join("; ")}`);
    this.faults = faults;
  }
}

/** `/dkim/privateKey` is spoken of as dkim.privateKey. */
export const inWords = ({ path, message }: Fault): string => `${path.slice(1).replaceAll("/", ".")} ${message}`.trim();
