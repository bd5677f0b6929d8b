// The part of the configuration that says where weeks go before they are dropped: nowhere, a directory, or a bucket. In the file it is
// one object; each of its fields may also be a variable, which counts more.

import { resolve } from "node:path";
import type { ArchiveSettings, S3Settings } from "#archive/settings.ts";
import type { Fault } from "#domain/problems.ts";
import { AWS_VARIABLES, type AwsEnvironment } from "#wire/aws-credentials.ts";
import { misfit, NOT_SHOWN, shortly } from "./fault.ts";
import { type Environment, readObject, type SettingsOf } from "./setting.ts";

/** As it is written; resolveArchive() makes settings of it. */
export type ArchiveGiven = { archive: { readonly [field: string]: unknown } | undefined };

export const ARCHIVE: SettingsOf<ArchiveGiven> = {
  archive: {
    env: "CARILLON_ARCHIVE",
    expected: "an object with a directory, or with a bucket",
    fallback: undefined,
    isSecret: true,
    read: readObject,
  },
};

const FORMS: { readonly [field: string]: { expected: string; form: RegExp; isSecret?: true } } = {
  directory: { expected: "a directory", form: /./ },
  endpoint: { expected: "a URL like https://s3.example.com", form: /^https?:\/\/[\w.:[\]-]+(\/[\w./-]*)?$/ },
  bucket: { expected: "the name of a bucket", form: /^[a-z0-9][a-z0-9.-]{1,62}$/ },
  prefix: { expected: "a path like carillon/production", form: /^[\w!.*'() -]+(\/[\w!.*'() -]+)*\/?$/ },
  region: { expected: "a region like eu-west-1", form: /^[a-z0-9-]{1,32}$/ },
  pathStyle: { expected: "true or false", form: /^(true|false)$/ },
  accessKeyId: { expected: "printable ASCII without spaces", form: /^[!-~]{1,128}$/, isSecret: true },
  secretAccessKey: { expected: "printable ASCII without spaces", form: /^[!-~]{1,256}$/, isSecret: true },
  sessionToken: { expected: "printable ASCII without spaces", form: /^[!-~]{1,8192}$/, isSecret: true },
  sse: { expected: "AES256 or aws:kms", form: /^(AES256|aws:kms)$/ },
  kmsKeyId: { expected: "the id or ARN of a key", form: /^[!-~]{1,2048}$/ },
};

const variableOf = (field: string) =>
  `CARILLON_ARCHIVE_${field.replace(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase()}`;
export const ARCHIVE_VARIABLES: readonly string[] = Object.keys(FORMS).map(variableOf);

type Fields = { readonly [field: string]: string | undefined };

/** Undefined without an archive. */
export function resolveArchive(
  given: ArchiveGiven["archive"],
  env: Environment,
  cwd: string,
): { archive: ArchiveSettings | undefined; faults: Fault[] } {
  const faults: Fault[] = [];
  for (const field of Object.keys(given ?? {})) {
    if (!Object.hasOwn(FORMS, field)) faults.push(misfit(`archive.${field}`, "a known setting", "an unknown one"));
  }
  const fields = Object.fromEntries(Object.keys(FORMS).map((field) => [field, readField(field, given, env, faults)]));
  const isGiven = given !== undefined || ARCHIVE_VARIABLES.some((name) => env[name]);
  if (!isGiven || faults.length > 0) return { archive: undefined, faults };
  if (fields.directory !== undefined) {
    if (fields.bucket === undefined)
      return { archive: { kind: "directory", directory: resolve(cwd, fields.directory) }, faults };
    faults.push(misfit("archive", "a directory or a bucket", "both"));
    return { archive: undefined, faults };
  }
  const archive = bucketOf(fields, env, faults);
  return { archive: faults.length > 0 ? undefined : { kind: "s3", ...archive }, faults };
}

function readField(
  field: string,
  given: ArchiveGiven["archive"],
  env: Environment,
  faults: Fault[],
): string | undefined {
  const { expected, form, isSecret } = FORMS[field] as (typeof FORMS)[string];
  const variable = variableOf(field);
  const [path, written] = env[variable] ? [variable, env[variable]] : [`archive.${field}`, given?.[field]];
  if (written === undefined) return undefined;
  const named = typeof written === "string" && written.startsWith("env:") ? written.slice(4) : undefined;
  const value = named === undefined ? written : env[named];
  if (named !== undefined && !value) {
    faults.push(misfit(path, `the environment variable ${named}`, "none"));
    return undefined;
  }
  const text = typeof value === "boolean" ? String(value) : value;
  if (typeof text === "string" && form.test(text)) return text;
  faults.push(misfit(path, expected, isSecret || named !== undefined ? NOT_SHOWN : shortly(value)));
  return undefined;
}

function bucketOf(fields: Fields, env: Environment, faults: Fault[]): S3Settings {
  const { endpoint, bucket = "", prefix = "", accessKeyId, secretAccessKey, sessionToken, sse, kmsKeyId } = fields;
  const region =
    fields.region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? (endpoint === undefined ? "" : "us-east-1");
  if (bucket === "") faults.push(misfit("archive.bucket", "the name of a bucket, or archive.directory", "none"));
  if (region === "") faults.push(misfit("archive.region", "a region like eu-west-1", "none"));
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    faults.push(misfit("archive", "accessKeyId and secretAccessKey, or neither", "one of them"));
  }
  if (kmsKeyId !== undefined && sse !== "aws:kms")
    faults.push(misfit("archive.sse", "aws:kms where there is a kmsKeyId", "none"));
  const keys = accessKeyId !== undefined && secretAccessKey !== undefined && { accessKeyId, secretAccessKey };
  return {
    endpoint,
    bucket,
    prefix: prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`,
    region,
    // Servers of one's own seldom have a name for each bucket.
    pathStyle: fields.pathStyle === undefined ? endpoint !== undefined : fields.pathStyle === "true",
    credentials: keys
      ? { kind: "keys", keys: { ...keys, ...(sessionToken !== undefined && { sessionToken }) } }
      : { kind: "chain", env: Object.fromEntries(AWS_VARIABLES.map((name) => [name, env[name]])) as AwsEnvironment },
    sse: sse === undefined ? undefined : { algorithm: sse as "AES256" | "aws:kms", keyId: kmsKeyId },
  };
}
