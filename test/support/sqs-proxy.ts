// Stands before a server that speaks like SQS and does what SQS may do: gives messages twice, in any order, refuses, or is away.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Misdeeds = {
  /** Nobody answers. */
  isAway?: boolean;
  /** Each message is there twice. */
  sendsTwice?: boolean;
  /** What was received comes in another order, and some of it once more. */
  shuffles?: boolean;
  /** By action, the error that it answers with. */
  refuses?: { [action: string]: string };
};

export type SqsProxy = {
  endpoint: string;
  misdeeds: Misdeeds;
  /** How often each action was asked for, answered or not. */
  asked: { [action: string]: number };
  stop(): Promise<void>;
};

type Received = { Messages?: unknown[] };

export async function startSqsProxy(target: string): Promise<SqsProxy> {
  const misdeeds: Misdeeds = {};
  const asked: { [action: string]: number } = {};

  async function forward(request: IncomingMessage, body: Buffer): Promise<{ status: number; text: string }> {
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
    const answer = await fetch(target, { method: "POST", headers: headers as { [name: string]: string }, body });
    return { status: answer.status, text: await answer.text() };
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const action = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    asked[action] = (asked[action] ?? 0) + 1;
    const body = Buffer.concat(await request.toArray());
    const refused = misdeeds.refuses?.[action];
    if (misdeeds.isAway) return void request.socket.destroy();
    if (refused) {
      const said = { __type: `com.amazonaws.sqs#${refused}`, message: "the policy says no" };
      return void response.writeHead(refused === "ThrottlingException" ? 429 : 403).end(JSON.stringify(said));
    }
    if (action === "SendMessageBatch" && misdeeds.sendsTwice) await forward(request, body);
    const { status, text } = await forward(request, body);
    if (misdeeds.isAway) return void request.socket.destroy();
    const isChanged = action === "ReceiveMessage" && misdeeds.shuffles;
    response.writeHead(status).end(isChanged ? JSON.stringify(shuffled(JSON.parse(text))) : text);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    misdeeds,
    asked,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function shuffled({ Messages = [], ...rest }: Received): Received {
  const twice = [...Messages, ...Messages.filter((_, n) => n % 3 === 0)];
  return { ...rest, Messages: twice.reverse() };
}
