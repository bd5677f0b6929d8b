// Where in the dashboard one is: what stands behind the # of the address. So links can be kept and sent to others.

import { useLayoutEffect, useState } from "preact/hooks";

/** `#/messages/ID?status=failed` is the page `messages`, the rest `["ID"]`, and the query. */
export type Place = { page: string; rest: string[]; query: URLSearchParams };

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").map(decoded);
  return { page, rest: rest.filter((part) => part !== ""), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function linkTo(page: string, rest: string[] = [], query: { [name: string]: string | undefined } = {}): string {
  const path = [page, ...rest.map(encodeURIComponent)].join("/");
  const asked = new URLSearchParams(
    Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
  return `#/${path}${asked.size > 0 ? `?${asked}` : ""}`;
}

export function go(link: string): void {
  location.hash = link;
}

/** The same page with other filters; it takes the place of the one before. */
export function refilter(place: Place, query: { [name: string]: string | undefined }): void {
  const merged = { ...Object.fromEntries(place.query), ...query };
  history.replaceState(null, "", linkTo(place.page, place.rest, merged));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useLayoutEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return placeOf(hash);
}
