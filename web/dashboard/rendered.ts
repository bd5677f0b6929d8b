// What its reader saw, channel by channel. Everything in it is a stranger's text.

import { useState } from "preact/hooks";
import { safeLink } from "../inbox/safe-link.ts";
import { named, post } from "./api.ts";
import { blocksOf, PushCard, SlackBlocks } from "./channel-views.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { MailView } from "./mail-view.ts";
import type { Whole } from "./message.ts";
import type { Content } from "./messages.ts";
import { Code, Empty, Read } from "./parts.ts";

const textIn = (content: Content, field: string): string | undefined => {
  const value = content[field];
  return typeof value === "string" && value !== "" ? value : undefined;
};

export function Rendered({ message }: { message: Whole }): VNode {
  const { content, channel, forgotten } = message;
  if (forgotten) return html`<${Empty} title="Forgotten">Whose it was is no longer known, nor what it said.<//>`;
  return textIn(content, "templateId") === undefined
    ? html`<${ContentView} channel=${channel} content=${content} />`
    : html`<${FromTemplate} message=${message} />`;
}

type Filled = { version: number; locale: string; content: Content };

function FromTemplate({ message: { content, channel, recipient } }: { message: Whole }): VNode {
  const id = textIn(content, "templateId") ?? "";
  const { templateVersion: version, variables = {} } = content;
  const body = { variables, recipient, ...(version !== undefined && { version }) };
  const filled = useLive(`${id} ${JSON.stringify(body)}`, () =>
    post<Filled>(`/v1/templates/${named(id)}/preview`, body),
  );
  return html`<${Read} of=${filled}>${({ version: shown, content: made }: Filled) => html`
    <p class="soft">Template <code>${id}</code>, version ${shown}${version === undefined ? ", as it is now" : ""}.</p>
    <${ContentView} channel=${channel} content=${{ ...content, ...made }} />`}<//>`;
}

export function ContentView({ channel, content }: { channel: string; content: Content }): VNode {
  if (channel === "email") return html`<${Mail} content=${content} />`;
  if (channel === "push") return html`<${PushCard} content=${content} />`;
  const blocks = channel === "slack" ? blocksOf(content) : undefined;
  if (blocks) return html`<${SlackBlocks} blocks=${blocks} />`;
  const title = textIn(content, "title");
  const body = textIn(content, "body") ?? textIn(content, "textBody");
  if (channel === "webhook" || (title === undefined && body === undefined))
    return html`<${Code} label="Content" of=${content} />`;
  const link = safeLink(content.clickAction, location.href);
  return html`<div class="bubble">${title !== undefined && html`<strong>${title}</strong><br />`}${body}
    ${link && html`<br /><a href=${link.href} target="_blank" rel="noopener noreferrer">${link.href}</a>`}</div>`;
}

function Mail({ content }: { content: Content }): VNode {
  const subject = textIn(content, "subject") ?? "without a subject";
  const htmlBody = textIn(content, "htmlBody");
  const textBody = textIn(content, "textBody");
  const ways = [
    htmlBody !== undefined && "HTML",
    textBody !== undefined && "Text",
    htmlBody !== undefined && "Source",
  ].filter((way): way is string => way !== false);
  const [chosen, choose] = useState<string>();
  const way = chosen ?? ways[0];
  const buttons = ways.map(
    (one) =>
      html`<button type="button" class=${`small ${one === way ? "chosen" : ""}`} aria-pressed=${one === way} onClick=${() => choose(one)}>${one}</button>`,
  );
  return html`<div class="line"><strong class="title">${subject}</strong>${ways.length > 1 && html`<span class="actions">${buttons}</span>`}</div>
    ${way === "HTML" && html`<${MailView} mail=${htmlBody} title=${`The mail "${subject}"`} />`}
    ${way === "Text" && html`<${Code} label="Text of the mail" of=${textBody} />`}
    ${way === "Source" && html`<${Code} label="Source of the mail" of=${htmlBody} />`}`;
}
