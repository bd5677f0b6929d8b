// The little XML that Amazon's services answer with: elements without attributes that matter, looked for by name.

/** What stands in each element of that name, as it is written: elements within, or text for `textIn`. */
export const elementsIn = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}(?: [^>]*)?>([\\s\\S]*?)</${name}>`, "g"))].map(([, inner = ""]) => inner);

export function textIn(xml: string, name: string): string | undefined {
  const [inner] = elementsIn(xml, name);
  return inner?.replace(/&(?:lt|gt|amp|quot|apos|#x?[\da-fA-F]+);/g, decoded);
}

const NAMED: { readonly [entity: string]: string } = {
  "&lt;": "<",
  "&gt;": ">",
  "&amp;": "&",
  "&quot;": '"',
  "&apos;": "'",
};

function decoded(entity: string): string {
  const code = entity.startsWith("&#x") ? Number.parseInt(entity.slice(3), 16) : Number.parseInt(entity.slice(2), 10);
  return NAMED[entity] ?? String.fromCodePoint(code);
}
