// Where a text stops being JSON. JSON.parse tells it only sometimes, and then quotes what it read, which may be a secret.

const SPACE = /[ \t\n\r]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Line and column of the first fault, both from 1; undefined where there is none. */
export function jsonFaultAt(text: string): { line: number; column: number } | undefined {
  let at = 0;
  const matches = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  };
  const skip = (sign: string): boolean => {
    matches(SPACE);
    if (text[at] !== sign) return false;
    at++;
    return true;
  };
  const isMember = (): boolean => {
    matches(SPACE);
    return matches(STRING) && skip(":") && isValue();
  };
  const isList = (isOne: () => boolean, end: string): boolean => {
    if (skip(end)) return true;
    do if (!isOne()) return false;
    while (skip(","));
    return skip(end);
  };
  const isValue = (): boolean => {
    if (skip("{")) return isList(isMember, "}");
    if (skip("[")) return isList(isValue, "]");
    return matches(STRING) || matches(SCALAR);
  };

  const isWhole = isValue();
  matches(SPACE);
  if (isWhole && at === text.length) return undefined;
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
}
