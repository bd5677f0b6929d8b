// An error in the words that a person may read: the innermost reason, on one line, without what a URL may carry of a password.

const LONGEST = 500;

export function whyOf(error: unknown): string {
  let why = error;
  for (let inner = innerOf(why); inner !== undefined; inner = innerOf(why)) why = inner;
  const said = why instanceof Error ? why.message || why.name : String(why);
  return said
    .replace(/\s+/g, " ")
    .replace(/\/\/[^\s/@]*@/g, "//")
    .slice(0, LONGEST);
}

function innerOf(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const [first] = error instanceof AggregateError ? error.errors : [];
  return [error.cause, first].find((inner) => inner instanceof Error);
}
