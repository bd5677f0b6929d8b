// Fills variables into the texts of a notice: {{ at }}, {{ before }}, {{ key }}, with Liquid's filters.
//
// Only output, no tags: nothing here can loop, include or take long. Whole templates are another matter.

import { Liquid } from "liquidjs";
import type { Notice } from "../domain/notice.ts";
import type { Fault } from "../domain/problems.ts";

export type Variables = { at: string; before: string; key: string };

const limits = { parseLimit: 300_000, renderLimit: 50, memoryLimit: 1_000_000, timezoneOffset: 0 };
const plain = new Liquid({ ...limits, ownPropertyOnly: true, strictFilters: true, templates: {} });
const html = new Liquid({
  ...limits,
  ownPropertyOnly: true,
  strictFilters: true,
  templates: {},
  outputEscape: "escape",
});

/** Every text of the content, filled. Throws when one is not valid Liquid. */
export function fillNotice(notice: Notice, variables: Variables): Notice {
  const { templateId, variables: given } = notice.content;
  const content = fill(notice.content, variables, false) as Notice["content"];
  return {
    ...notice,
    content: templateId === undefined ? content : { ...content, variables: { ...variables, ...given } },
  };
}

/** What fillNotice() would throw, told as faults. */
export function faultsOfTexts(value: unknown, path: string): Fault[] {
  if (typeof value === "string") {
    const fault = faultOf(value);
    return fault === undefined ? [] : [{ path, message: fault }];
  }
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => faultsOfTexts(inner, `${path}/${name}`));
}

function faultOf(text: string): string | undefined {
  if (!text.includes("{")) return undefined;
  if (text.includes("{%")) return "must not have Liquid tags, only {{ … }}";
  if (/\{\{[^}]*\.\./.test(text)) return "must not have Liquid ranges";
  try {
    plain.parse(text);
    return undefined;
  } catch (error) {
    return `must be valid Liquid (${error instanceof Error ? error.message : error})`;
  }
}

function fill(value: unknown, variables: Variables, isHtml: boolean): unknown {
  if (typeof value === "string") {
    return value.includes("{{") ? (isHtml ? html : plain).parseAndRenderSync(value, variables) : value;
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((inner) => fill(inner, variables, isHtml));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, fill(inner, variables, isHtml || name === "htmlBody")]),
  );
}
