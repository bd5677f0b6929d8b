// What every place for archives must do. An adapter's test file calls this with a way to open stores.

import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { ArchiveError, type ArchiveStore, type Stored } from "#archive/store.ts";

export type StoresUnderTest = {
  open(): ArchiveStore;
  /** One that is away. */
  openBroken(): ArchiveStore;
  stop(): Promise<void>;
};

/** What a server may leave out that only answers as one would. */
export type Lacks = { checksum?: true; ifAbsent?: true };

export function archiveStoreConformance(name: string, setUp: () => Promise<StoresUnderTest>, lacks: Lacks = {}): void {
  let under: StoresUnderTest;
  let store: ArchiveStore;
  before(async () => {
    under = await setUp();
    store = under.open();
  });
  after(async () => {
    await store.close();
    await under.stop();
  });

  const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");
  const put = (key: string, content: Buffer, ifAbsent = false) =>
    store.put(key, content, { sha256: sha256(content), type: "application/gzip", ifAbsent });
  const get = async (key: string) => {
    const stream = await store.get(key);
    return stream && Buffer.concat(await stream.toArray());
  };
  const keysOf = async (prefix: string) => (await listed(store, prefix)).map(({ key }) => key);

  test(`${name}: what was put is found again, byte for byte, with its size`, async () => {
    const key = `${randomUUID()}/00001-${randomUUID()}.jsonl.gz`;
    for (const content of [randomBytes(1), randomBytes(6_000_000), Buffer.from("again")]) {
      assert.equal(await put(key, content), true);
      assert.equal(await store.head(key), content.length);
      assert.ok((await get(key))?.equals(content));
    }
  });

  test(`${name}: what is not there is undefined, and lists nothing`, async () => {
    const key = `${randomUUID()}/nothing`;
    assert.deepEqual([await store.get(key), await store.head(key), await keysOf(key)], [undefined, undefined, []]);
  });

  const testUnless = (isLacking: true | undefined, title: string, act: () => Promise<void>) =>
    isLacking ? undefined : test(title, act);

  testUnless(
    lacks.checksum,
    `${name}: content that is not what its checksum says is refused, and nothing is kept of it`,
    async () => {
      const key = `${randomUUID()}/damaged`;
      const damaged = { sha256: sha256(Buffer.from("else")), type: "application/gzip", ifAbsent: false } as const;
      await assert.rejects(store.put(key, Buffer.from("something"), damaged), ArchiveError);
      assert.equal(await store.head(key), undefined);
    },
  );

  testUnless(lacks.ifAbsent, `${name}: where a key is taken, ifAbsent changes nothing and says so`, async () => {
    const key = `${randomUUID()}/manifest.json`;
    assert.equal(await put(key, Buffer.from("one"), true), true);
    assert.equal(await put(key, Buffer.from("two"), true), false);
    assert.equal(String(await get(key)), "one");
  });

  test(`${name}: lists by prefix in the order of keys, however many there are`, async () => {
    const under = randomUUID();
    const keys = Array.from({ length: 30 }, (_, n) => `${under}/a${n % 3}/${String(n).padStart(5, "0")}.gz`);
    await Promise.all([...keys, `${under}/b`, `${under}-beside/x`].map((key) => put(key, Buffer.from(key))));
    assert.deepEqual(await keysOf(`${under}/a`), [...keys].sort());
    assert.deepEqual((await keysOf(`${under}/`)).at(-1), `${under}/b`);
    const [first] = await listed(store, `${under}/a1/`);
    assert.deepEqual(first, { key: `${under}/a1/00001.gz`, bytes: `${under}/a1/00001.gz`.length });
  });

  test(`${name}: one that is away says so, whatever it is asked for`, async () => {
    const away = under.openBroken();
    const content = Buffer.from("x");
    const options = { sha256: sha256(content), type: "application/json", ifAbsent: true } as const;
    await assert.rejects(away.put("k", content, options), ArchiveError);
    await assert.rejects(listed(away, ""), ArchiveError);
    await away.close();
  });
}

export async function listed(store: ArchiveStore, prefix: string): Promise<Stored[]> {
  const found: Stored[] = [];
  for await (const stored of store.list(prefix)) found.push(stored);
  return found;
}
