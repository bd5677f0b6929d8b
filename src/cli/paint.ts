// Colours, and what others wrote made fit for a terminal.
//
// What a provider said, a tenant is called or a person wrote may hold sequences that move the cursor, set the title or hide what follows.
// So a line for people loses every control character but the few that we paint with ourselves.

const CODES = { red: 31, green: 32, yellow: 33, blue: 36, faint: 2, bold: 1 } as const;
export type Colour = keyof typeof CODES;

const ESC = String.fromCharCode(27);

export type Paint = (colour: Colour, text: string) => string;
export const paintOf =
  ({ hasColour }: { hasColour: boolean }): Paint =>
  (colour, text) =>
    hasColour ? `${ESC}[${CODES[colour]}m${clean(text, false)}${ESC}[0m` : text;

const OURS = new RegExp(`${ESC}\\[(?:0|${Object.values(CODES).join("|")})m`, "g");
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** One line of it stays one line. */
export function clean(text: string, hasColour: boolean): string {
  if (!hasColour) return text.replace(OURS, "").replace(CONTROLS, " ");
  const painted = text.match(OURS) ?? [];
  return text
    .split(OURS)
    .map((part, n) => part.replace(CONTROLS, " ") + (painted[n] ?? ""))
    .join("");
}

const WARNED = new Set(["retrying", "postponed", "ambiguous", "pending"]);
const BAD = new Set(["failed", "expired", "rejected", "unavailable", "lost"]);
const GOOD = new Set(["sent", "delivered", "accepted"]);

/** Of a status, an outcome or a type of fact. */
export function colourOf(word: string): Colour {
  if (BAD.has(word)) return "red";
  if (WARNED.has(word)) return "yellow";
  return GOOD.has(word) ? "green" : "faint";
}
