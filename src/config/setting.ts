// One setting: where it is written, what it may be, and what holds without it. The forms that several settings have.

export type Environment = { [name: string]: string | undefined };

export type Setting<Value> = {
  env: string;
  /** What variable and setting were called before; they still count, and the log asks for the new names. */
  formerly?: { env: string; name: string };
  expected: string;
  fallback: Value;
  isSecret?: boolean;
  /** Undefined when the given value will not do. */
  read: (given: unknown) => Value | undefined;
};

/** A part of the configuration, setting by setting. */
export type SettingsOf<Part> = { [Name in keyof Part]-?: Setting<Part[Name]> };

export function readText(form: RegExp): (given: unknown) => string | undefined {
  return (given) => (typeof given === "string" && form.test(given) ? given : undefined);
}

export function readInteger(least: number, most: number): (given: unknown) => number | undefined {
  return (given) => {
    const value = typeof given === "string" && /^\d{1,9}$/.test(given) ? Number(given) : given;
    return Number.isInteger(value) && Number(value) >= least && Number(value) <= most ? Number(value) : undefined;
  };
}

/** A list, or the same with commas in a variable. */
export function readList(given: unknown): readonly unknown[] | undefined {
  const list = typeof given === "string" ? given.split(",").map((one) => one.trim()) : given;
  return Array.isArray(list) ? list : undefined;
}

/** Some of the names we know, in our order. */
export function readSome<Name extends string>(known: readonly Name[]): (given: unknown) => readonly Name[] | undefined {
  return (given) => {
    const names = readList(given);
    if (!names || names.length === 0) return undefined;
    const some = known.filter((name) => names.includes(name));
    return some.length === new Set(names).size ? Object.freeze(some) : undefined;
  };
}

export const isObject = (given: unknown): given is { [name: string]: unknown } =>
  given !== null && typeof given === "object" && !Array.isArray(given);

/** An object, or the same as JSON in a variable. */
export function readObject(given: unknown): { [name: string]: unknown } | undefined {
  if (isObject(given)) return given;
  try {
    const value: unknown = JSON.parse(String(given));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
