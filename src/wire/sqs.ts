// How SQS, or what speaks like it, is asked: one signed request for each action, in JSON.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference

import { oneLine } from "#domain/said.ts";
import { type AwsIdentity, credentialsOf } from "./aws-credentials.ts";
import { createHttp } from "./http.ts";
import { jsonOf, textAt } from "./json-answer.ts";
import { signV4 } from "./sigv4.ts";

export type SqsSettings = {
  /** Undefined: Amazon's own, of the region. */
  endpoint: string | undefined;
  region: string;
  /** What the names of all queues begin with: who share an account have others. */
  prefix: string;
  credentials: AwsIdentity;
};

export type SqsAction =
  | "GetQueueUrl"
  | "CreateQueue"
  | "GetQueueAttributes"
  | "SendMessageBatch"
  | "ReceiveMessage"
  | "DeleteMessageBatch"
  | "ChangeMessageVisibilityBatch"
  | "PurgeQueue";

export type Sqs = {
  /** Rejects with an SqsError; what was asked may have been done all the same. */
  ask(action: SqsAction, body: object, waitMs?: number): Promise<unknown>;
  /** How often each action was asked for: that is what it costs. */
  requests(): { readonly [action in SqsAction]?: number };
  /** What is under way fails. */
  close(): Promise<void>;
};

export class SqsError extends Error {
  /** As SQS names it; undefined where it did not answer. */
  readonly code: string | undefined;
  /** It is away, or has too much to do: asked later, it may do it. */
  readonly isPassing: boolean;
  constructor(message: string, { code, isPassing }: { code?: string | undefined; isPassing: boolean }) {
    super(message);
    this.name = "SqsError";
    this.code = code;
    this.isPassing = isPassing;
  }
}

/** For an answer, besides what SQS was asked to wait. */
const ANSWER_MS = 5_000;
const PASSING = /Throttl|Unavailable|InternalFailure|InternalError|OverLimit|DeletedRecently|RequestLimit/;

export function openSqs({ endpoint, region, credentials: identity }: Omit<SqsSettings, "prefix">): Sqs {
  const http = createHttp();
  const closing = new AbortController();
  const findCredentials = credentialsOf(identity, { region, http, now: Date.now });
  const url = `${(endpoint ?? `https://sqs.${region}.amazonaws.com`).replace(/\/$/, "")}/`;
  const requests: { [action in SqsAction]?: number } = {};
  return {
    requests: () => requests,
    async ask(action, asked, waitMs = 0) {
      const body = JSON.stringify(asked);
      const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": `AmazonSQS.${action}` };
      const credentials = await findCredentials().catch((cause: Error) => {
        throw new SqsError(cause.message, { code: "NoCredentials", isPassing: false });
      });
      const scope = { service: "sqs", region, credentials, now: Date.now() };
      const { host: _, ...signed } = signV4({ method: "POST", url, headers, body }, scope);
      requests[action] = (requests[action] ?? 0) + 1;
      const timing = { signal: closing.signal, timeoutMs: ANSWER_MS + waitMs };
      const answer = await http.ask({ url, headers: signed, body, ...timing });
      if ("kind" in answer) throw new SqsError(`SQS does not answer: ${answer.reason}`, { isPassing: true });
      if (answer.status === 200) return jsonOf(answer.text) ?? {};
      throw refusalOf(answer.status, answer.text);
    },
    async close() {
      closing.abort(new Error("it is closed"));
      await http.close();
    },
  };
}

/** By the error's name and words; those of a signature that does not fit quote what was signed, and are left out. */
function refusalOf(status: number, text: string): SqsError {
  const said = jsonOf(text);
  const code = textAt(said, "__type")?.split("#").at(-1);
  const words = code?.includes("Signature") ? undefined : (textAt(said, "message") ?? textAt(said, "Message"));
  return new SqsError(`SQS answered ${status}${oneLine([code, words].map((part) => part && `: ${part}`).join(""))}`, {
    code,
    isPassing: status >= 500 || status === 429 || (code !== undefined && PASSING.test(code)),
  });
}
