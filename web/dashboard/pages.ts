// All pages, in the order of the menu. A new one is one more entry here.

import type { VNode } from "./html.ts";
import { Overview } from "./overview.ts";
import type { Place } from "./route.ts";
import type { Scope } from "./session.ts";

export type PageProps = { place: Place };
export type PageEntry = {
  /** Behind `#/`. */
  page: string;
  title: string;
  group: "Traffic" | "Plans" | "People" | "House";
  /** After g. */
  shortcut: string;
  needs: Scope;
  View: (props: PageProps) => VNode;
};

export const PAGES: readonly PageEntry[] = [
  { page: "", title: "Overview", group: "Traffic", shortcut: "o", needs: "read", View: Overview },
];
