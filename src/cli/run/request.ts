// A request from what was said on the command line, over what a file says.

import { readFile } from "node:fs/promises";
import type { NotificationRequest } from "#client/client.ts";
import { type Call, EXIT, Failure, type World } from "../command.ts";
import { definedOf } from "./lines.ts";

/** Where --to leads, by channel. */
const ADDRESS: { [channel: string]: string } = {
  email: "email",
  sms: "phone",
  slack: "slackChannel",
  webhook: "webhookUrl",
  inbox: "userId",
  push: "userId",
};

/** Whether it is a good one the service says: there it is known. */
export async function readRequest({ options }: Call, world: Pick<World, "readInput">): Promise<NotificationRequest> {
  const given = options.file === undefined ? {} : await readGiven(options.file, world);
  const channel = options.channel ?? String(given.channel ?? "");
  if (channel === "")
    throw new Failure("say which: --channel CHANNEL, or a request in a file: --file PATH", EXIT.usage);
  const { to, user, subject, title, body, html, template, variables } = options;
  const address = to === undefined ? {} : addressOf(channel, to);
  const text = body === undefined ? {} : { [channel === "email" ? "textBody" : "body"]: body };
  const request = {
    ...given,
    channel,
    recipient: { ...partOf(given.recipient), ...address, ...definedOf({ userId: user }) },
    content: {
      ...partOf(given.content),
      ...definedOf({ subject, title, htmlBody: html, templateId: template }),
      ...text,
      ...(variables && { variables: parsed(variables, "--variables") }),
    },
    ...definedOf({
      priority: options.priority,
      scheduledFor: options.at,
      expiresAt: options.expires,
      idempotencyKey: options["idempotency-key"],
    }),
  };
  return request as NotificationRequest;
}

function addressOf(channel: string, to: string): { [name: string]: string } {
  const name = ADDRESS[channel];
  if (name === undefined) throw new Failure(`${channel} has no address: leave out --to`, EXIT.usage);
  return { [channel === "slack" && /^https?:/.test(to) ? "webhookUrl" : name]: to };
}

async function readGiven(path: string, { readInput }: Pick<World, "readInput">): Promise<{ [name: string]: unknown }> {
  const text =
    path === "-"
      ? await readInput()
      : await readFile(path, "utf8").catch((cause: Error) => {
          throw new Failure(`${path} cannot be read: ${cause.message}`, EXIT.usage, { cause });
        });
  const given = parsed(text, path === "-" ? "standard input" : path);
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return { ...given };
  throw new Failure(`${path} must hold one request, a JSON object`, EXIT.usage);
}

function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure(`${where} is not JSON`, EXIT.usage, { cause });
  }
}

const partOf = (value: unknown): { [name: string]: unknown } =>
  typeof value === "object" && value !== null ? { ...value } : {};
