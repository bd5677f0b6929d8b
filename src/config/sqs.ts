// The part of the configuration that says where SQS is, for whoever lets ready work wait there. A region, or an endpoint, makes it known.

import type { Fault } from "#domain/problems.ts";
import { AWS_VARIABLES, type AwsEnvironment } from "#wire/aws-credentials.ts";
import type { SqsSettings } from "#wire/sqs.ts";
import { misfit } from "./fault.ts";
import { type Environment, readText, type SettingsOf } from "./setting.ts";

/** As it is written; resolveSqs() makes settings of it. */
export type SqsGiven = {
  sqsRegion: string | undefined;
  sqsEndpoint: string | undefined;
  sqsPrefix: string;
  sqsAccessKeyId: string | undefined;
  sqsSecretAccessKey: string | undefined;
  sqsSessionToken: string | undefined;
};

const secret = (env: string) => ({
  env,
  expected: "printable ASCII without spaces",
  fallback: undefined,
  isSecret: true,
  read: readText(/^[!-~]{1,8192}$/),
});

export const SQS: SettingsOf<SqsGiven> = {
  sqsRegion: {
    env: "CARILLON_SQS_REGION",
    expected: "a region like eu-west-1",
    fallback: undefined,
    read: readText(/^[a-z0-9-]{1,32}$/),
  },
  sqsEndpoint: {
    env: "CARILLON_SQS_ENDPOINT",
    expected: "a URL like http://localhost:4566",
    fallback: undefined,
    read: readText(/^https?:\/\/[\w.:[\]-]+\/?$/),
  },
  sqsPrefix: {
    env: "CARILLON_SQS_PREFIX",
    expected: "up to 50 letters, digits, _ and -",
    fallback: "carillon",
    read: readText(/^[\w-]{1,50}$/),
  },
  sqsAccessKeyId: secret("CARILLON_SQS_ACCESS_KEY_ID"),
  sqsSecretAccessKey: secret("CARILLON_SQS_SECRET_ACCESS_KEY"),
  sqsSessionToken: secret("CARILLON_SQS_SESSION_TOKEN"),
};

/** Where a server of one's own does not care. */
const ANY_REGION = "us-east-1";

/** Undefined without SQS. */
export function resolveSqs(given: SqsGiven, env: Environment): { sqs: SqsSettings | undefined; faults: Fault[] } {
  const { sqsRegion, sqsEndpoint, sqsPrefix, sqsAccessKeyId, sqsSecretAccessKey, sqsSessionToken } = given;
  if ((sqsAccessKeyId === undefined) !== (sqsSecretAccessKey === undefined)) {
    const expected = "it with CARILLON_SQS_SECRET_ACCESS_KEY, or neither";
    return { sqs: undefined, faults: [misfit("CARILLON_SQS_ACCESS_KEY_ID", expected, "one of them")] };
  }
  if (sqsRegion === undefined && sqsEndpoint === undefined) return { sqs: undefined, faults: [] };
  const keys = sqsAccessKeyId !== undefined &&
    sqsSecretAccessKey !== undefined && {
      accessKeyId: sqsAccessKeyId,
      secretAccessKey: sqsSecretAccessKey,
      ...(sqsSessionToken !== undefined && { sessionToken: sqsSessionToken }),
    };
  return {
    sqs: {
      endpoint: sqsEndpoint,
      region: sqsRegion ?? env.AWS_REGION ?? ANY_REGION,
      prefix: sqsPrefix,
      credentials: keys
        ? { kind: "keys", keys }
        : { kind: "chain", env: Object.fromEntries(AWS_VARIABLES.map((name) => [name, env[name]])) as AwsEnvironment },
    },
    faults: [],
  };
}
