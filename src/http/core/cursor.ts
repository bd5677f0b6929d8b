// Cursors: the id of the last row of a page, in a form nobody is tempted to make up.

import { Type } from "typebox";

/** Sixteen bytes in base64url. */
export const Cursor = Type.String({
  pattern: "^[A-Za-z0-9_-]{22}$",
  "x-expects": "a nextCursor of an earlier page",
});

export const cursorOf = (id: string): string => Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url");

export function idOfCursor(cursor: string): string {
  const hex = Buffer.from(cursor, "base64url").toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
