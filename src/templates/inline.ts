// Fills variables into the texts of a notice: {{ at }}, {{ key }}, of a reminder {{ before }} too, with Liquid's filters.
//
// Only output, no tags. That alone does not make it harmless, for a filter may take as long as it likes: what a tenant wrote is
// parsed and filled in the threads, as templates are.

import { faultsOfSize, type Notice } from "#domain/notice.ts";
import { type Fault, Problem } from "#domain/problems.ts";
import type { Renderer } from "./renderer.ts";
import { type Source, type TemplateFields, textsIn, told } from "./template.ts";

export type NoticeVariables = { at: string; before?: string; key: string };

export type NoticeTexts = {
  /** Every text of the content, filled; or why not. `isPassing` when it may go well another time. */
  fill(
    tenant: number,
    notice: Notice,
    variables: NoticeVariables,
  ): Promise<{ notice: Notice } | { error: string; isPassing: boolean }>;
  /** What fill() would fail for, or make too large; `path` is where the notice stands in the body. */
  faultsOf(tenant: number, notice: Notice, path: string): Promise<Fault[]>;
};

/** As long as they ever are. */
const EXAMPLE: NoticeVariables = {
  at: "2027-01-01T00:00:00.000Z",
  before: "P999Y11M30DT23H59M59S",
  key: "k".repeat(200),
};

export function createNoticeTexts(renderer: Renderer): NoticeTexts {
  return {
    async fill(tenant, notice, variables) {
      const { templateId, templateVersion, variables: given, ...fields } = notice.content;
      const rendered = hasLiquid(fields)
        ? await renderer.render(sourceOf(tenant, fields), variables)
        : { ok: true as const, fields };
      if (!rendered.ok) return { error: told(rendered.error), isPassing: rendered.error.why !== undefined };
      const template =
        templateId === undefined
          ? given && { variables: given }
          : {
              templateId,
              ...(templateVersion !== undefined && { templateVersion }),
              variables: { ...variables, ...given },
            };
      return { notice: { ...notice, content: { ...rendered.fields, ...template } } };
    },
    async faultsOf(tenant, notice, inBody) {
      const { templateId: _i, templateVersion: _v, variables: _g, ...fields } = notice.content;
      const path = `${inBody}/content`;
      if (!hasLiquid(fields)) return [];
      const faults = textsIn(fields).flatMap(({ path: field, text }) => {
        const message = faultOf(text);
        return message === undefined ? [] : [{ path: `${path}/${field}`, message }];
      });
      if (faults.length > 0) return faults;
      const source = sourceOf(tenant, fields);
      const errors = await renderer.check(source);
      const rendered = errors.length === 0 ? await renderer.render(source, EXAMPLE) : undefined;
      if (rendered?.ok) {
        const isTooLarge = faultsOfSize(notice, inBody).length > 0;
        return isTooLarge ? [] : faultsOfSize({ ...notice, content: rendered.fields }, inBody);
      }
      if (rendered) errors.push(rendered.error);
      const busy = errors.find(({ why }) => why === "busy");
      if (busy) throw new Problem("OVERLOADED", busy.message, { retryAfterSeconds: 1 });
      return errors.map((error) => ({
        path: error.field === undefined ? path : `${path}/${error.field}`,
        message: `must be valid Liquid (${told(error)})`,
      }));
    },
  };
}

const hasLiquid = (fields: object): boolean =>
  textsIn(fields).some(({ text }) => text.includes("{{") || text.includes("{%"));

const sourceOf = (tenant: number, fields: TemplateFields): Source => ({
  tenant,
  fields,
  partials: {},
  locale: "default",
  strict: false,
});

function faultOf(text: string): string | undefined {
  if (text.includes("{%")) return "must not have Liquid tags, only {{ … }}";
  return /\{\{[^{}]*\.\./.test(text) ? "must not have Liquid ranges" : undefined;
}
