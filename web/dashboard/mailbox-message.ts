// One message of the mailbox, as its reader would have seen it and as it would have gone over the wire.

import { ask, get } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import type { KeptMessage } from "./mailbox.ts";
import { type Content, titleOf } from "./messages.ts";
import { Card, Code, Facts, Read, When } from "./parts.ts";
import { ContentView } from "./rendered.ts";
import { go, linkTo } from "./route.ts";
import { useMay } from "./session.ts";
import { many, recipientOf } from "./words.ts";

type Wire = {
  as: string;
  type: string;
  body: string;
  url?: string;
  headers?: { [name: string]: string };
  mail?: { from: string; cc: string[]; bcc: string[]; replyTo?: string; text: string };
  sms?: { encoding: string; segments: number; characters: number };
};
type Whole = KeptMessage & { wire?: Wire };

export function Kept({ id }: { id: string }): VNode {
  const path = `/v1/dev/messages/${encodeURIComponent(id)}`;
  const whole = useLive(path, (signal) => get<Whole>(path, signal));
  const maySend = useMay("send");
  const forget = () =>
    confirm({
      title: "Delete this message?",
      text: "1 message is deleted from the mailbox. What was sent is not touched.",
      verb: "Delete",
      isDangerous: true,
      async act() {
        await ask("DELETE", path);
        go(linkTo("mailbox"));
        return "The message is deleted.";
      },
    });
  return html`<${Read} of=${whole}>${({
    channel,
    at,
    notificationId,
    message: { content, recipient, device },
    wire,
  }: Whole) => html`
    <div class="heading"><h1 class="title">${titleOf(content)}</h1>
      ${maySend && html`<button type="button" class="danger" onClick=${forget}>Delete</button>`}</div>
    <${Card}><${Facts} of=${[
      ["Channel", channel],
      ["To", recipientOf(recipient)],
      wire?.mail && wire.mail.cc.length > 0 && ["Copies", wire.mail.cc.join(", ")],
      wire?.mail && wire.mail.bcc.length > 0 && ["Blind copies", wire.mail.bcc.join(", ")],
      device && ["Device", html`<code>${device.token}</code> ${device.platform}`],
      wire?.mail && ["From", wire.mail.from],
      wire?.mail?.replyTo !== undefined && ["Answers to", wire.mail.replyTo],
      wire?.sms && ["Segments", `${many(wire.sms.segments, "segment")} in ${wire.sms.encoding}`],
      wire?.url !== undefined && wire.url !== recipientOf(recipient) && ["URL", html`<code>${wire.url}</code>`],
      ["Kept", html`<${When} at=${at} />`],
      ["Notification", html`<a href=${linkTo("messages", [notificationId])}>${notificationId}</a>`],
    ]} /><//>
    <${Card} title="As its reader sees it"><${ContentView} channel=${channel} content=${wire?.mail ? { textBody: wire.mail.text, ...content } : content} /><//>
    <${Attachments} path=${path} content=${content} />
    ${
      wire &&
      html`<${Card} title=${`On the wire, as ${wire.as} would have it`} aside=${html`<a href=${`${path}/source`} download>Save</a>`}>
        ${wire.headers && html`<${Code} label="Headers" of=${wire.headers} />`}
        <${Code} label="Source" of=${wire.body} /><//>`
    }`}<//>`;
}

/** Saved and never shown, whatever they call themselves. */
function Attachments({ path, content }: { path: string; content: Content }): VNode | null {
  const { attachments } = content;
  if (!Array.isArray(attachments)) return null;
  return html`<${Card} title="Attachments"><ul class="plain-list">${attachments.map(
    ({ filename }, n) => html`<li><a href=${`${path}/attachments/${n}`} download>${String(filename)}</a></li>`,
  )}</ul><//>`;
}
