// How many short messages a text becomes: carriers charge for each.

// GSM 03.38: one septet each.
const BASIC = new Set(
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà",
);
/** An escape and another septet. */
const EXTENDED = new Set("\f^{}\\[~]|€");

export type Segments = { encoding: "GSM-7" | "UCS-2"; segments: number };

/** A text of several segments loses a few characters of each to the header that joins them. */
export function segmentsOf(text: string): Segments {
  const characters = [...text];
  const widths = characters.map((one) => (BASIC.has(one) ? 1 : EXTENDED.has(one) ? 2 : 0));
  if (!widths.includes(0)) return { encoding: "GSM-7", segments: count(widths, 160, 153) };
  // In UTF-16 units: an emoji takes two.
  const units = characters.map((one) => one.length);
  return { encoding: "UCS-2", segments: count(units, 70, 67) };
}

/** No character is cut in two, so a segment may stay short by one. */
function count(widths: number[], alone: number, joined: number): number {
  const total = widths.reduce((sum, width) => sum + width, 0);
  if (total <= alone) return 1;
  let segments = 1;
  let used = 0;
  for (const width of widths) {
    if (used + width > joined) {
      segments++;
      used = 0;
    }
    used += width;
  }
  return segments;
}
