// Reads what a stranger wrote: any field may be missing, or be anything.

export type Fields = { [name: string]: unknown };

export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;
export const listOf = (value: unknown, most: number): Fields[] =>
  Array.isArray(value) ? value.slice(0, most).map(fieldsOf) : [];
