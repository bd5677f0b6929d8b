/** An instant as the milliseconds that a Date has of it, for what is read as JSON. */
export const wholeMs = (instant: string): string => `floor(extract(epoch from ${instant}) * 1000)`;
