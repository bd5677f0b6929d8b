// An archive in a bucket of S3, or of a server that speaks like it.
//
// An object is one PUT with its checksum, which the server compares: it is there whole or not at all. What passes (a server that is busy, a
// connection that broke) is asked again a few times; all requests may be repeated.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { oneLine } from "#domain/said.ts";
import { credentialsOf } from "#wire/aws-credentials.ts";
import { type BulkAnswer, type BulkRequest, createBulkHttp } from "#wire/bulk-http.ts";
import { createHttp } from "#wire/http.ts";
import { encodeSegment, signV4 } from "#wire/sigv4.ts";
import { elementsIn, textIn } from "#wire/xml.ts";
import type { S3Settings } from "./settings.ts";
import { ArchiveError, type ArchiveStore } from "./store.ts";

export type S3Options = { now?: () => number; waitMs?: number };

const TRIES = 4;
/** Before the second try; twice as long before each that follows. */
const WAIT_MS = 250;
const EMPTY = createHash("sha256").digest("hex");
const MAX_ERROR_BYTES = 65_536;

type Asked = Pick<BulkRequest, "method"> & {
  key?: string;
  query?: { [name: string]: string };
  headers?: { [name: string]: string };
  body?: Buffer;
  sha256?: string;
};

export function s3Store(settings: S3Settings, { now = Date.now, waitMs = WAIT_MS }: S3Options = {}): ArchiveStore {
  const { bucket, region, prefix, sse } = settings;
  const bulk = createBulkHttp();
  const http = createHttp();
  const findCredentials = credentialsOf(settings.credentials, { region, http, now });
  const base = baseOf(settings);

  async function once({ method, key, query, headers = {}, body, sha256 = EMPTY }: Asked): Promise<BulkAnswer> {
    const path = key === undefined ? "/" : `/${(prefix + key).split("/").map(encodeSegment).join("/")}`;
    const url = `${base}${path}${query ? `?${new URLSearchParams(query)}` : ""}`;
    const scope = { service: "s3", region, credentials: await findCredentials(), now: now() };
    const { host: _, ...signed } = signV4({ method, url, headers, sha256 }, scope);
    return bulk.ask({ method, url, headers: signed, ...(body && { body }) });
  }

  /** An answer that is a success, or one of those statuses. */
  async function ask(asked: Asked, ...statuses: number[]): Promise<BulkAnswer> {
    for (let tries = 1; ; tries++) {
      const failure = await once(asked).then(
        async (answer) => {
          if (answer.status < 300 || statuses.includes(answer.status)) return answer;
          return {
            error: await refusalOf(answer),
            isPassing: answer.status >= 500 || answer.status === 429 || answer.status === 409,
          };
        },
        (cause: unknown) => ({ error: awayError(cause), isPassing: true }),
      );
      if ("status" in failure) return failure;
      if (!failure.isPassing || tries === TRIES) throw failure.error;
      await sleep(waitMs * 2 ** (tries - 1));
    }
  }

  const encryption: { [name: string]: string } = sse
    ? {
        "x-amz-server-side-encryption": sse.algorithm,
        ...(sse.keyId !== undefined && { "x-amz-server-side-encryption-aws-kms-key-id": sse.keyId }),
      }
    : {};

  return {
    place: `s3://${bucket}/${prefix}`,
    async put(key, content, { sha256, type, ifAbsent }) {
      const checksum = Buffer.from(sha256, "hex").toString("base64");
      const headers = { "content-type": type, "x-amz-checksum-sha256": checksum, ...encryption };
      const condition: { [name: string]: string } = ifAbsent ? { "if-none-match": "*" } : {};
      const put = (more: { [name: string]: string }) =>
        ask({ method: "PUT", key, headers: { ...headers, ...more }, body: content, sha256 }, 412, 501);
      let answer = await put(condition);
      await answer.body.dump();
      // The server does not know the condition.
      if (answer.status === 501 && ifAbsent) {
        answer = await put({});
        await answer.body.dump();
      }
      if (answer.status === 501) throw new ArchiveError("the archive answered 501");
      return answer.status !== 412;
    },
    async get(key) {
      const answer = await ask({ method: "GET", key }, 404);
      if (answer.status !== 404) return answer.body;
      await missing(answer);
      return undefined;
    },
    async head(key) {
      const answer = await ask({ method: "HEAD", key }, 404);
      await answer.body.dump();
      return answer.status === 404 ? undefined : Number(answer.header("content-length"));
    },
    async *list(wanted) {
      let next: string | undefined;
      do {
        const query: { [name: string]: string } = { "list-type": "2", prefix: prefix + wanted };
        if (next !== undefined) query["continuation-token"] = next;
        const page = await (await ask({ method: "GET", query })).body.text();
        for (const entry of elementsIn(page, "Contents")) {
          const key = textIn(entry, "Key");
          if (key?.startsWith(prefix)) yield { key: key.slice(prefix.length), bytes: Number(textIn(entry, "Size")) };
        }
        next = textIn(page, "IsTruncated") === "true" ? textIn(page, "NextContinuationToken") : undefined;
      } while (next !== undefined);
    },
    async close() {
      await Promise.all([bulk.close(), http.close()]);
    },
  } satisfies ArchiveStore;
}

function baseOf({ endpoint, region, bucket, pathStyle }: S3Settings): string {
  const { protocol, host, pathname } = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
  const path = pathname.replace(/\/$/, "");
  return pathStyle ? `${protocol}//${host}${path}/${bucket}` : `${protocol}//${bucket}.${host}${path}`;
}

/** A bucket that is not there is no empty archive. */
async function missing(answer: BulkAnswer): Promise<void> {
  const text = await answer.body.text();
  if (textIn(text, "Code") === "NoSuchBucket") throw new ArchiveError("the archive answered 404: NoSuchBucket");
}

/** By the error's name: its words may quote what was signed. */
async function refusalOf(answer: BulkAnswer): Promise<ArchiveError> {
  let text = "";
  for await (const piece of answer.body) {
    text += piece;
    if (text.length > MAX_ERROR_BYTES) break;
  }
  const code = textIn(text, "Code");
  return new ArchiveError(`the archive answered ${answer.status}${code ? `: ${oneLine(code)}` : ""}`);
}

function awayError(cause: unknown): ArchiveError {
  if (cause instanceof ArchiveError) return cause;
  const code = cause instanceof Error && "code" in cause ? ` (${cause.code})` : "";
  const words = code === "" && cause instanceof Error ? `: ${oneLine(cause.message)}` : code;
  return new ArchiveError(`the archive does not answer${words}`, { cause });
}
