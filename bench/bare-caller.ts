// The least that anybody does who posts callbacks: signs each with v1 and v1a and posts it, over as many connections as it is told, from a list
// in memory.

import { Pool } from "undici";
import { newSecrets } from "../src/domain/endpoint.ts";
import { signingKeysOf, signWebhook } from "../src/wire/standard-webhooks.ts";

const [, , url = "", connections = "1", count = "0", body = ""] = process.argv;
const keys = signingKeysOf([newSecrets()]);
const pool = new Pool(url, { connections: Number(connections), pipelining: 1 });
let next = 0;

async function line(): Promise<void> {
  while (next < Number(count)) {
    const signed = signWebhook({ id: `msg_${next++}`, at: Date.now(), body }, keys);
    const headers = { "content-type": "application/json", ...signed };
    const answer = await pool.request({ path: "/", method: "POST", headers, body });
    await answer.body.dump();
  }
}

process.on("message", async (message) => {
  if (message !== "go") return;
  await Promise.all(Array.from({ length: Number(connections) }, line));
  process.send?.({ isDone: true });
});
process.on("SIGTERM", () => process.exit(0));
process.send?.({ isReady: true });
