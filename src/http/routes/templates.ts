// /v1/templates: texts that are kept here, in versions and languages, and filled for each message.

import { Type } from "typebox";
import { Instant, oneOf, Recipient, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { Key, pageBody } from "#http/core/schemas.ts";
import {
  activateTemplate,
  putTemplate,
  removeTemplate,
  type TemplateWorld,
  unrendered,
} from "#steps/manage/templates.ts";
import { findTemplate, listTemplates, listVersions, type StoredTemplate } from "#store/templates.ts";
import { TEMPLATE_CHANNELS, TemplateContent, TemplateFields } from "#templates/template.ts";

const tag = "Templates";
const TemplateId = Type.String({ ...Key, maxLength: 128 });
const Version = Type.Integer({ minimum: 1, maximum: 1_000_000_000 });
const Locale = Recipient.properties.locale;

const TemplateRequest = strict({
  channel: oneOf(TEMPLATE_CHANNELS),
  name: Type.String({ minLength: 1, maxLength: 200 }),
  content: TemplateContent,
  engine: Type.Optional(oneOf(["liquid"])),
  strict: Type.Optional(Type.Boolean()),
  activate: Type.Optional(Type.Boolean()),
});
const VersionBody = Type.Object({
  id: TemplateId,
  version: Version,
  isActive: Type.Boolean(),
  activeVersion: Version,
  latestVersion: Version,
  channel: oneOf(TEMPLATE_CHANNELS),
  name: Type.String(),
  engine: Type.String(),
  strict: Type.Boolean(),
  createdAt: Instant,
});
const TemplateBody = Type.Interface([VersionBody], { content: TemplateContent });

const params = strict({ id: TemplateId });

const noSuch = (id: string, version?: number) =>
  new Problem("NOT_FOUND", `there is no ${version === undefined ? "" : `version ${version} of `}template ${id}`);

export function templateRoutes(world: TemplateWorld): Route[] {
  return [list(world), put(world), read(world), versions(world), activate(world), preview(world), remove(world)];
}

const put = (world: TemplateWorld): Route =>
  route({
    method: "PUT",
    path: "/v1/templates/:id",
    summary: "Store a new version of a template",
    detail:
      "The texts of `content` are Liquid; `mjml` is made into `htmlBody`. Either the fields stand in `content` itself, or " +
      "under `locales`, by language, with a `default`: a recipient with the locale `fr-CA` reads `fr-CA`, else `fr`, else " +
      "`default`. What stands in `htmlBody` and `mjml` is escaped. With `strict`, an unknown variable is an error. The new " +
      "version is sent from now on, unless `activate` is false. What the latest version says already makes no new one. Templates of the channel `partial` are included by " +
      'others: `{% render "name" %}`, `{% layout "name" %}`, `<mj-include path="name" />`.',
    tag,
    scope: "admin",
    params,
    body: TemplateRequest,
    answers: { 200: { description: "The version as it is kept", schema: TemplateBody } },
    handle: async ({ params: { id }, body, actor }) => ({
      status: 200,
      body: bodyOf(orThrow(await putTemplate(world, actor, id, body))),
    }),
  });

const list = ({ pool }: TemplateWorld): Route =>
  route({
    method: "GET",
    path: "/v1/templates",
    summary: "List templates",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(TemplateId),
    }),
    answers: {
      200: { description: "One page of active versions, in order of their ids", schema: pageBody(VersionBody) },
    },
    async handle({ query: { limit = 50, cursor = "" }, actor }) {
      const found = await listTemplates(pool, actor.tenant, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOfVersion);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.id ?? null) : null } };
    },
  });

const read = ({ pool }: TemplateWorld): Route =>
  route({
    method: "GET",
    path: "/v1/templates/:id",
    summary: "Read a template: its active version, or another",
    tag,
    scope: "read",
    params,
    query: strict({ version: Type.Optional(Version) }),
    answers: { 200: { description: "The version", schema: TemplateBody } },
    async handle({ params: { id }, query: { version }, actor }) {
      const found = await findTemplate(pool, actor.tenant, id, version);
      if (!found) throw noSuch(id, version);
      return { status: 200, body: bodyOf(found) };
    },
  });

const versions = ({ pool }: TemplateWorld): Route =>
  route({
    method: "GET",
    path: "/v1/templates/:id/versions",
    summary: "List the versions of a template, the latest first",
    tag,
    scope: "read",
    turn: "large",
    params,
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Version),
    }),
    answers: { 200: { description: "One page", schema: pageBody(VersionBody) } },
    async handle({ params: { id }, query: { limit = 50, cursor }, actor }) {
      const found = await listVersions(pool, actor.tenant, id, cursor, limit + 1);
      if (found.length === 0 && !(await findTemplate(pool, actor.tenant, id))) throw noSuch(id);
      const data = found.slice(0, limit).map(bodyOfVersion);
      const last = found.length > limit ? data.at(-1) : undefined;
      return { status: 200, body: { data, nextCursor: last ? String(last.version) : null } };
    },
  });

const activate = (world: TemplateWorld): Route =>
  route({
    method: "POST",
    path: "/v1/templates/:id/activate",
    summary: "Send another version from now on",
    detail: "Other processes follow within five seconds. Notifications that name a `templateVersion` keep to it.",
    tag,
    scope: "admin",
    params,
    body: strict({ version: Version }),
    answers: { 200: { description: "The version that is active now", schema: TemplateBody } },
    async handle({ params: { id }, body: { version }, actor }) {
      const found = await activateTemplate(world, actor, id, version);
      if (!found) throw noSuch(id, version);
      return { status: 200, body: bodyOf(found) };
    },
  });

const preview = ({ pool, templates }: TemplateWorld): Route =>
  route({
    method: "POST",
    path: "/v1/templates/:id/preview",
    summary: "Render a template and send nothing",
    detail: "`recipient` is there for templates that name it: {{ recipient.userId }}.",
    tag,
    scope: "read",
    params,
    body: strict({
      variables: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 })),
      version: Type.Optional(Version),
      locale: Locale,
      recipient: Type.Optional(Recipient),
    }),
    answers: {
      200: {
        description: "What would be sent",
        schema: Type.Object({ id: TemplateId, version: Version, locale: Type.String(), content: TemplateFields }),
      },
    },
    async handle({ params: { id }, body, actor: { tenant } }) {
      const { variables = {}, version, locale, recipient } = body;
      const found = await findTemplate(pool, tenant, id, version);
      if (!found) throw noSuch(id, version);
      const { locale: picked, rendered } = await templates.preview(tenant, found, { variables, locale, recipient });
      if (!rendered.ok) {
        const { field } = rendered.error;
        throw unrendered([{ ...rendered.error, path: field ? `/content/${field}` : "/content" }]);
      }
      return { status: 200, body: { id, version: found.version, locale: picked, content: rendered.fields } };
    },
  });

const remove = (world: TemplateWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/templates/:id",
    summary: "Delete a template with all its versions",
    detail: "A notification that still waits for its turn and names it will fail. Version numbers are not used again.",
    tag,
    scope: "admin",
    params,
    answers: { 204: { description: "It is gone" } },
    async handle({ params: { id }, actor }) {
      if (!(await removeTemplate(world, actor, id))) throw noSuch(id);
      return { status: 204 };
    },
  });

function bodyOfVersion({ content: _, createdAt, ...version }: StoredTemplate) {
  return { ...version, isActive: version.version === version.activeVersion, createdAt: createdAt.toISOString() };
}

const bodyOf = (stored: StoredTemplate) => ({ ...bodyOfVersion(stored), content: stored.content });
