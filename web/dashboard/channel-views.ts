// A push as the card that a phone shows, and Slack's blocks. Everything in them is a stranger's: text stays text, and no picture is fetched.

import { safeLink } from "../inbox/safe-link.ts";
import { type Fields, fieldsOf, listOf as listUpTo, textOf } from "./fields.ts";
import { html, type VNode } from "./html.ts";
import type { Content } from "./messages.ts";
import { Code } from "./parts.ts";
import { RichText } from "./rich-text.ts";

/** More than Slack takes of anything; what would be beyond is in the source, and does not keep the page busy. */
const MOST = 50;

/** Where it leads, if that can be opened; otherwise what it says. */
function Leads({ to }: { to: string }): VNode {
  const link = safeLink(to, location.href);
  return link
    ? html`<a href=${link.href} target="_blank" rel="noopener noreferrer">${to}</a>`
    : html`<code>${to}</code>`;
}

export function PushCard({ content }: { content: Content }): VNode {
  const { badge, data } = content;
  const [opens, picture, sound] = [content.clickAction, content.imageUrl, content.sound].map(textOf);
  const besides = [
    typeof badge === "number" && `badge ${badge}`,
    sound !== undefined && `sound ${sound}`,
    picture !== undefined && html`picture <${Leads} to=${picture} />`,
    opens !== undefined && html`opens <${Leads} to=${opens} />`,
  ].filter((one) => one !== false);
  return html`<div class="push"><strong>${textOf(content.title) ?? "Without a title"}</strong>
      <p>${textOf(content.body)}</p></div>
    ${besides.length > 0 && html`<ul class="besides">${besides.map((one) => html`<li>${one}</li>`)}</ul>`}
    ${data !== undefined && html`<${Code} label="Data" of=${data} />`}`;
}

export const blocksOf = ({ data }: Content): unknown[] | undefined => {
  const blocks = fieldsOf(data).blocks;
  return Array.isArray(blocks) ? blocks.slice(0, MOST) : undefined;
};

export const SlackBlocks = ({ blocks }: { blocks: unknown[] }): VNode =>
  html`<div class="blocks">${blocks.map((block, n) => html`<${Block} block=${block} label=${`Block ${n + 1}`} />`)}</div>`;

const listOf = (value: unknown): Fields[] => listUpTo(value, MOST);
/** `{ type: "mrkdwn", text: "…" }`, shown as it was written. */
const wordsOf = (value: unknown): string | undefined => textOf(fieldsOf(value).text);

function Block({ block, label }: { block: unknown; label: string }): VNode {
  const { type, text, fields, accessory, elements } = fieldsOf(block);
  switch (type) {
    case "header":
      return html`<p><strong>${wordsOf(text)}</strong></p>`;
    case "section":
      return html`<p>${wordsOf(text)}</p>
        ${listOf(fields).map((field) => html`<p>${textOf(field.text)}</p>`)}
        ${accessory !== undefined && html`<${Element} element=${fieldsOf(accessory)} />`}`;
    case "rich_text":
      return html`<${RichText} block=${fieldsOf(block)} />`;
    case "divider":
      return html`<hr />`;
    case "image":
      return html`<${Element} element=${fieldsOf(block)} />`;
    case "context":
    case "actions":
      return html`<p class=${type === "context" ? "soft line" : "line"}>${listOf(elements).map((element) => html`<${Element} element=${element} />`)}</p>`;
    default:
      return html`<${Code} label=${label} of=${block} />`;
  }
}

/** What can be clicked there does nothing here, but says where it would lead. */
function Element({ element }: { element: Fields }): VNode {
  const { type, text, url } = element;
  if (type === "image") {
    const picture = textOf(element.image_url);
    return html`<span>${textOf(element.alt_text) ?? "A picture"}${picture !== undefined && html`: <${Leads} to=${picture} />`}</span>`;
  }
  const leads = textOf(url);
  return html`<span>${textOf(text) ?? wordsOf(text) ?? textOf(type) ?? "something"}${leads !== undefined && html`: <${Leads} to=${leads} />`}</span>`;
}
