// A list of things. In a narrow window each becomes a small card, with the columns' names beside what they say.

import type { Page } from "./api.ts";
import { type ComponentChildren, html, type VNode } from "./html.ts";

export type Column<Item> = {
  title: string;
  cell: (item: Item) => ComponentChildren;
  /** Numbers stand one below the other. */
  isNumber?: boolean;
  /** May be cut off where there is no room. */
  isLong?: boolean;
};

export function Table<Item>({
  label,
  items,
  columns,
  keyOf,
}: {
  label: string;
  items: readonly Item[];
  columns: Column<Item>[];
  keyOf: (item: Item) => string;
}): VNode {
  const classOf = ({ isNumber, isLong }: Column<Item>) => (isNumber ? "number" : isLong ? "long" : "");
  // Roles are said, as the narrow layout takes them away; there what is in a cell stands beside the column's name, as one thing.
  return html`<table role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">
      ${columns.map((column) => html`<th role="columnheader" scope="col" class=${classOf(column)}>${column.title}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">
      ${items.map(
        (item) => html`<tr role="row" key=${keyOf(item)} data-row>
          ${columns.map(
            (column) =>
              html`<td role="cell" class=${classOf(column)} data-title=${column.title}><div>${column.cell(item)}</div></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

/** Keyset pages: on to the next, and back to the first. */
export function Pager({
  page,
  isFirst,
  onNext,
  onFirst,
}: {
  page: Page<unknown>;
  isFirst: boolean;
  onNext: (cursor: string) => void;
  onFirst: () => void;
}): VNode | null {
  const { nextCursor } = page;
  if (isFirst && nextCursor === null) return null;
  return html`<nav class="pager" aria-label="More of the list">
    <button type="button" disabled=${isFirst} onClick=${onFirst}>First page</button>
    <button type="button" disabled=${nextCursor === null} onClick=${() => nextCursor !== null && onNext(nextCursor)}>Next page</button>
  </nav>`;
}
