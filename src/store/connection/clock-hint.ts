// The hint that the clock was moved: every process looks at once, instead of some seconds later.

import type { Queryable } from "./database.ts";
import { type Listening, listenOn } from "./listen.ts";

const CHANNEL = "carillon_clock";

export async function tellOfClock(db: Queryable): Promise<void> {
  await db.query("select pg_notify($1, '')", [CHANNEL]);
}

export const listenToClock = (url: string, onHint: () => void): Listening =>
  listenOn(url, { name: "clock", channels: [CHANNEL], onHeard: onHint, onConnected: onHint });
