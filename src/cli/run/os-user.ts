// Who somebody at the command line is to the operating system.

import { userInfo } from "node:os";

/** In a container a number may have no name. */
export function osUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
