// Where a notification may lead. Whoever can send one must not be able to run a script in the reader's page.

/** An absolute URL if the link is http, https or relative to the page; otherwise nothing, and the text is inert. */
export function safeLink(link: unknown, pageUrl: string): URL | undefined {
  if (typeof link !== "string" || link.trim() === "" || !URL.canParse(link, pageUrl)) return undefined;
  const url = new URL(link, pageUrl);
  return url.protocol === "https:" || url.protocol === "http:" ? url : undefined;
}
