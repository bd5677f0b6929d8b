// An error in the words that a person may read: the innermost reason, on one line, without what a URL may carry of a password.

const LONGEST = 500;

export function whyOf(error: unknown): string {
  let why = error;
  while (why instanceof Error && why.cause instanceof Error) why = why.cause;
  const [first] = why instanceof AggregateError ? why.errors : [];
  const said = first instanceof Error ? first.message : why instanceof Error ? why.message : String(why);
  return said
    .replace(/\s+/g, " ")
    .replace(/\/\/[^\s/@]*@/g, "//")
    .slice(0, LONGEST);
}
