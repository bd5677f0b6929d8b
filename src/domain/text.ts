// Text that somebody else wrote, made fit to be stored.
//
// JavaScript counts UTF-16 units: to cut after so many of them may leave half of a character that takes two, such as an emoji, and
// PostgreSQL takes no such half.

/** At most so many UTF-16 units, and no half of a character at the end. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  const isHalf = last >= 0xd800 && last < 0xdc00;
  return text.slice(0, isHalf ? most - 1 : most);
}

/** Without NUL, and with a mark in the place of every half of a character. */
export const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "");
