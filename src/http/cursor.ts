// Cursors: the id of the last row of a page, in a form nobody is tempted to make up.

import { isId } from "../domain/ids.ts";
import { invalid } from "../domain/problems.ts";

export const cursorOf = (id: string): string => Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url");

export function idOfCursor(cursor: string): string {
  const hex = Buffer.from(cursor, "base64url").toString("hex");
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  if (!isId(id)) throw invalid([{ path: "/cursor", message: "must be a nextCursor of an earlier page" }]);
  return id;
}
