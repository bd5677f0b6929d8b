// Whose name requests to Amazon's services are signed in, where no keys are configured: the chain that Amazon's own tools go through.
//
//   AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//   AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, as in Kubernetes (IRSA)
//   the shared credentials file, AWS_PROFILE of it
//   AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, as in ECS and EKS
//   the metadata service of a machine in EC2, version 2
//
// State: the credentials that were had last, until shortly before they expire.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Http, HttpRequest } from "./http.ts";
import { jsonOf, textAt } from "./json-answer.ts";
import type { AwsCredentials } from "./sigv4.ts";
import { textIn } from "./xml.ts";

/** Of the environment, what the chain goes by. */
export const AWS_VARIABLES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_ROLE_ARN",
  "AWS_ROLE_SESSION_NAME",
  "AWS_ENDPOINT_URL_STS",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_PROFILE",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
  "AWS_EC2_METADATA_DISABLED",
  "AWS_EC2_METADATA_SERVICE_ENDPOINT",
  "HOME",
] as const;
export type AwsEnvironment = { readonly [name in (typeof AWS_VARIABLES)[number]]?: string };

export type FindCredentials = () => Promise<AwsCredentials>;
type Found = AwsCredentials & { expiresAt?: number };
type Source = (world: ChainOptions) => Promise<Found | undefined>;
export type ChainOptions = { env: AwsEnvironment; region: string; http: Pick<Http, "ask">; now: () => number };

const RENEW_MS = 300_000;
const ANSWER_MS = 5_000;
/** Where there is no such service nobody answers at all. */
const METADATA_MS = 1_000;

/** Keys that were configured, or else what the environment gives. */
export type AwsIdentity = { kind: "keys"; keys: AwsCredentials } | { kind: "chain"; env: AwsEnvironment };

export function credentialsOf(given: AwsIdentity, world: Omit<ChainOptions, "env">): FindCredentials {
  return given.kind === "keys" ? async () => given.keys : credentialsChain({ ...world, env: given.env });
}

export function credentialsChain(options: ChainOptions): FindCredentials {
  let found: Promise<Found> | undefined;
  let renewAt = Number.POSITIVE_INFINITY;
  return () => {
    if (found && options.now() < renewAt) return found;
    renewAt = Number.POSITIVE_INFINITY;
    const mine = firstOf(options);
    found = mine;
    mine.then(
      ({ expiresAt = Number.POSITIVE_INFINITY }) => {
        renewAt = expiresAt - RENEW_MS;
      },
      () => {
        if (found === mine) found = undefined;
      },
    );
    return mine;
  };
}

const CHAIN: readonly Source[] = [fromVariables, fromWebIdentity, fromSharedFile, fromContainer, fromMachine];

async function firstOf(options: ChainOptions): Promise<Found> {
  for (const source of CHAIN) {
    const found = await source(options);
    if (found) return found;
  }
  throw new Error("there are no credentials: neither keys in the configuration nor any that the environment gives");
}

async function fromVariables({ env }: ChainOptions): Promise<Found | undefined> {
  return withToken(env.AWS_ACCESS_KEY_ID, env.AWS_SECRET_ACCESS_KEY, env.AWS_SESSION_TOKEN);
}

async function fromWebIdentity({ env, region, http }: ChainOptions): Promise<Found | undefined> {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role } = env;
  if (!file || !role) return undefined;
  const form = new URLSearchParams({
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: role,
    RoleSessionName: env.AWS_ROLE_SESSION_NAME || "carillon",
    WebIdentityToken: (await readFile(file, "utf8")).trim(),
  });
  const text = await textOf(http, "the token service", {
    method: "POST",
    url: env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.amazonaws.com/`,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: form.toString(),
  });
  const [id, secret, token] = ["AccessKeyId", "SecretAccessKey", "SessionToken"].map((name) => textIn(text, name));
  return expiring(withToken(id, secret, token), textIn(text, "Expiration"), "the token service");
}

async function fromSharedFile({ env }: ChainOptions): Promise<Found | undefined> {
  const file = env.AWS_SHARED_CREDENTIALS_FILE || (env.HOME && join(env.HOME, ".aws", "credentials"));
  if (!file) return undefined;
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
  });
  const profile = env.AWS_PROFILE || "default";
  const section = text?.split(/^\s*\[/m).find((part) => part.startsWith(`${profile}]`)) ?? "";
  const given = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)`, "m").exec(section)?.[1];
  return withToken(given("aws_access_key_id"), given("aws_secret_access_key"), given("aws_session_token"));
}

async function fromContainer({ env, http }: ChainOptions): Promise<Found | undefined> {
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file } = env;
  const url = path ? `http://169.254.170.2${path}` : env.AWS_CONTAINER_CREDENTIALS_FULL_URI;
  if (!url) return undefined;
  const token = file ? (await readFile(file, "utf8")).trim() : env.AWS_CONTAINER_AUTHORIZATION_TOKEN;
  const headers = token ? { authorization: token } : {};
  return fromJson(await textOf(http, "the container's credentials", { method: "GET", url, headers }));
}

async function fromMachine({ env, http }: ChainOptions): Promise<Found | undefined> {
  if (env.AWS_EC2_METADATA_DISABLED === "true") return undefined;
  const base = `${env.AWS_EC2_METADATA_SERVICE_ENDPOINT || "http://169.254.169.254"}/latest`;
  const lasting = { "x-aws-ec2-metadata-token-ttl-seconds": "300" };
  const signal = AbortSignal.timeout(METADATA_MS);
  const answer = await http.ask({ method: "PUT", url: `${base}/api/token`, headers: lasting, signal });
  if ("kind" in answer || answer.status !== 200) return undefined;
  const headers = { "x-aws-ec2-metadata-token": answer.text };
  const roles = `${base}/meta-data/iam/security-credentials/`;
  const role = (await textOf(http, "the machine's role", { method: "GET", url: roles, headers })).trim();
  return fromJson(await textOf(http, "the machine's role", { method: "GET", url: roles + role, headers }));
}

function fromJson(text: string): Found | undefined {
  const answer = jsonOf(text);
  const [id, secret] = [textAt(answer, "AccessKeyId"), textAt(answer, "SecretAccessKey")];
  return expiring(withToken(id, secret, textAt(answer, "Token")), textAt(answer, "Expiration"), "the metadata service");
}

function withToken(id: string | undefined, secret: string | undefined, token: string | undefined): Found | undefined {
  return id && secret ? { accessKeyId: id, secretAccessKey: secret, ...(token && { sessionToken: token }) } : undefined;
}

function expiring(found: Found | undefined, expiration: string | undefined, who: string): Found {
  if (!found) throw new Error(`${who} gave no credentials`);
  const expiresAt = Date.parse(expiration ?? "");
  return Number.isNaN(expiresAt) ? found : { ...found, expiresAt };
}

/** What it answers is never shown: it may be credentials. */
async function textOf(http: Pick<Http, "ask">, who: string, request: Omit<HttpRequest, "signal">): Promise<string> {
  const answer = await http.ask({ ...request, signal: AbortSignal.timeout(ANSWER_MS) });
  if ("kind" in answer) throw new Error(`${who} did not answer: ${answer.reason}`);
  if (answer.status !== 200) throw new Error(`${who} answered ${answer.status}`);
  return answer.text;
}
