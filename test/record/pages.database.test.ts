// Pages of large requests.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { email, type Service, startService } from "../support/service.ts";

const MANY = 40;
/** Of the largest; well compressible, so that what is kept says little about what is answered. */
const large = { ...email(), metadata: { note: "x".repeat(250_000) } };

let service: Service;
let ids: string[];
before(async () => {
  service = await startService();
  const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications: Array(MANY).fill(large) });
  ids = body.results.map(({ notificationId }: { notificationId: string }) => notificationId).reverse();
  assert.equal(body.summary.succeeded, MANY);
});
after(() => service.stop());

/** Every page, and what it came to. */
async function pagesOf(path: string): Promise<{ ids: string[]; bytes: number }[]> {
  const pages: { ids: string[]; bytes: number }[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { status, body } = await service.ask("GET", `${path}?limit=200${cursor && `&cursor=${cursor}`}`);
    assert.equal(status, 200);
    const ids = body.data.map(({ notificationId }: { notificationId: string }) => notificationId);
    pages.push({ ids, bytes: JSON.stringify(body).length });
    cursor = body.nextCursor;
  }
  return pages;
}

for (const path of ["/v1/notifications", "/v1/dead-letters"])
  test(`a page of ${path} has 4 MiB and one request more at most, and the pages together have all`, async () => {
    if (path === "/v1/dead-letters") {
      await service.db.query("delete from carillon.ready");
      await service.db.query(
        `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
         select unnest($1::uuid[]), 1, 'attempt', 'processing', 'failed', 1`,
        [ids],
      );
    }
    const pages = await pagesOf(path);
    assert.deepEqual(
      pages.flatMap((page) => page.ids),
      ids,
    );
    assert.equal(pages.length, 3);
    for (const { bytes } of pages) assert.ok(bytes < 4.5 * 1024 * 1024, String(bytes));
  });
