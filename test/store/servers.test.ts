// Database URLs with several servers, as libpq has them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "pg-connection-string";
import { serversOf } from "#store/connection/servers.ts";

const places = (url: string) => serversOf(url)?.map(({ host, port }) => `${host} ${port}`);

test("hosts and ports are read as libpq reads them", () => {
  for (const [url, expected] of [
    ["postgres://a,b/db", ["a 5432", "b 5432"]],
    ["postgresql://u:p@a:1,b:2,c/db?target_session_attrs=read-write", ["a 1", "b 2", "c 5432"]],
    ["postgres://[::1]:1,[::2]/db?target_session_attrs=primary", ["::1 1", "::2 5432"]],
    ["postgres:///db?host=a,b&port=1,2", ["a 1", "b 2"]],
    ["postgres:///db?host=a,b&port=7", ["a 7", "b 7"]],
    ["postgres://u@/db?host=%2Frun%2Fone,%2Frun%2Ftwo", ["/run/one 5432", "/run/two 5432"]],
    ["postgres://a/db", ["a 5432"]],
  ] as const) {
    assert.deepEqual(places(url), expected, url);
  }
});

test("each server has a URL of its own, with everything else that was said", () => {
  const url = "postgres://ada:s%40cret@one:1,two:2/my%20db?target_session_attrs=read-write&sslmode=disable";
  const urls = serversOf(url)?.map((server) => parse(server.url)) ?? [];
  for (const [n, { host, port, user, password, database, ssl }] of urls.entries()) {
    assert.deepEqual([host, port], [["one", "two"][n], String(n + 1)]);
    assert.deepEqual([user, password, database, ssl], ["ada", "s@cret", "my db", false]);
  }
  assert.equal(urls.length, 2);
});

test("what cannot be read, or only reads, is refused", () => {
  for (const url of [
    "mysql://a/db",
    "postgres://a,b,c/db?port=1,2",
    "postgres://a,,b/db",
    "postgres://a,b/db?target_session_attrs=standby",
    "postgres://a,b/db?target_session_attrs=read-only",
    "postgres://a%zz/db",
    "postgres://a%ff,b/db",
    "postgres://a:port/db",
    "postgres://a:1,b:65536/db",
  ]) {
    assert.equal(serversOf(url), undefined, url);
  }
});

test("a password that had to be encoded and is not makes a URL that is refused, and nothing else is read out of it", () => {
  for (const hosts of ["a", "a,b"]) {
    for (const password of ["se#cret", "se/cret", "se?cret", "12/34", "12?34", "12#34", "se@/cret"]) {
      const url = `postgres://ada:${password}@${hosts}/db`;
      assert.equal(serversOf(url), undefined, url);
    }
    for (const password of [
      "se@cret",
      "se:cret",
      "se,cret",
      "se%cret",
      "se+cret",
      "se&cret=1",
      "se%2F%3F%23cret",
      "\u00fc",
    ]) {
      const url = `postgres://ada:${password}@${hosts}/db`;
      const read = serversOf(url)?.map((server) => parse(server.url));
      assert.deepEqual(
        read?.map(({ user, host, database }) => [user, host, database]),
        hosts.split(",").map((host) => ["ada", host, "db"]),
        url,
      );
      for (const one of read ?? []) assert.equal(one.password, parse(`postgres://ada:${password}@a/db`).password);
    }
  }
});
