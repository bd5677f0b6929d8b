// Where credentials come from when none are configured, in the order of Amazon's own tools.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { type AwsEnvironment, credentialsChain } from "#wire/aws-credentials.ts";
import { createHttp } from "#wire/http.ts";
import { startStandIn } from "../support/stand-in.ts";

let server: Awaited<ReturnType<typeof startStandIn>>;
let home: string;
let now = Date.UTC(2026, 0, 5);
const http = createHttp();
before(async () => {
  server = await startStandIn();
  home = await mkdtemp(join(tmpdir(), "carillon-aws-"));
});
after(async () => {
  await http.close();
  await server.close();
  await rm(home, { recursive: true });
});
beforeEach(() => {
  server.received.length = 0;
});

const nowhere = { AWS_EC2_METADATA_DISABLED: "true" };
const find = (env: AwsEnvironment) => credentialsChain({ env, region: "eu-west-1", http, now: () => now });
const expiration = () => new Date(now + 3_600_000).toISOString();
const asJson = (id: string) => ({
  status: 200,
  body: { AccessKeyId: id, SecretAccessKey: "s", Token: "t", Expiration: expiration() },
});

test("variables come first", async () => {
  const env = {
    AWS_ACCESS_KEY_ID: "A",
    AWS_SECRET_ACCESS_KEY: "s",
    AWS_ROLE_ARN: "r",
    AWS_WEB_IDENTITY_TOKEN_FILE: "/",
  };
  assert.deepEqual(await find(env)(), { accessKeyId: "A", secretAccessKey: "s" });
});

test("a web identity is exchanged for credentials, which are kept until shortly before they expire", async () => {
  const file = join(home, "token");
  await writeFile(file, "the token\n");
  const written = () =>
    `<R><Credentials><AccessKeyId>A${server.received.length}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
      <SessionToken>t&amp;</SessionToken><Expiration>${expiration()}</Expiration></Credentials></R>`;
  server.answer(() => ({ status: 200, body: written() }));
  const chain = find({ AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: "arn:r", AWS_ENDPOINT_URL_STS: server.url });
  const [one, two] = await Promise.all([chain(), chain()]);
  assert.deepEqual([one.accessKeyId, one.sessionToken, two.accessKeyId], ["A1", "t&", "A1"]);
  const sent = Object.fromEntries(new URLSearchParams(server.received[0]?.body));
  assert.deepEqual(sent, {
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: "arn:r",
    RoleSessionName: "carillon",
    WebIdentityToken: "the token",
  });
  now += 56 * 60_000;
  assert.equal((await chain()).accessKeyId, "A2");
  assert.equal((await chain()).accessKeyId, "A2");
});

test("the shared file has a section for each profile", async () => {
  const file = join(home, "credentials");
  await writeFile(
    file,
    `[default]\naws_access_key_id = D\naws_secret_access_key=ds\n\n[other]\naws_access_key_id=O\naws_secret_access_key = os\naws_session_token=ot\n`,
  );
  const env = { AWS_SHARED_CREDENTIALS_FILE: file, ...nowhere };
  assert.deepEqual(await find(env)(), { accessKeyId: "D", secretAccessKey: "ds" });
  const other = await find({ ...env, AWS_PROFILE: "other" })();
  assert.deepEqual(other, { accessKeyId: "O", secretAccessKey: "os", sessionToken: "ot" });
});

test("a container asks where it was told, with its token", async () => {
  server.answer(() => asJson("C"));
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/v1`, AWS_CONTAINER_AUTHORIZATION_TOKEN: "Basic x" };
  assert.equal((await find({ ...env, HOME: home })()).accessKeyId, "C");
  assert.equal(server.received[0]?.headers.authorization, "Basic x");
});

test("a machine in EC2 has a role, asked for with a token of its own", async () => {
  server.answer(({ method, path }) =>
    method === "PUT"
      ? { status: 200, body: "tok" }
      : path.endsWith("/")
        ? { status: 200, body: "role\n" }
        : asJson("M"),
  );
  assert.equal((await find({ AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url })()).accessKeyId, "M");
  const [token, , role] = server.received;
  assert.equal(token?.path, "/latest/api/token");
  assert.equal(role?.path, "/latest/meta-data/iam/security-credentials/role");
  assert.equal(role?.headers["x-aws-ec2-metadata-token"], "tok");
});

test("where there are none it says so, and asks again the next time", async () => {
  const chain = find({ ...nowhere, AWS_CONTAINER_CREDENTIALS_FULL_URI: server.url });
  server.answer({ status: 500, body: "planted" });
  await assert.rejects(chain(), { message: "the container's credentials answered 500" });
  server.answer(() => asJson("C"));
  assert.equal((await chain()).accessKeyId, "C");
  await assert.rejects(find({ ...nowhere, HOME: home, AWS_PROFILE: "none" })(), /there are no credentials/);
});
