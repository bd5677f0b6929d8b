// What an archive is told: where it is, and whose name it is written in.

import type { AwsIdentity } from "#wire/aws-credentials.ts";

export type S3Settings = {
  /** Undefined: Amazon's own, of the region. */
  endpoint: string | undefined;
  bucket: string;
  /** Empty, or ends with a slash. */
  prefix: string;
  region: string;
  /** The bucket stands in the path, and not in the host's name. */
  pathStyle: boolean;
  credentials: AwsIdentity;
  sse: { algorithm: "AES256" | "aws:kms"; keyId: string | undefined } | undefined;
};

export type ArchiveSettings = { kind: "directory"; directory: string } | ({ kind: "s3" } & S3Settings);
