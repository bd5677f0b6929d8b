// A mail as its reader saw it, in a frame of its own. Images from elsewhere are loaded when somebody asks for them, and never by us.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { safeLink } from "../inbox/safe-link.ts";
import { html, type VNode } from "./html.ts";

const LEAST_HEIGHT = 120;
const MOST_HEIGHT = 1_600;

/** Whether it would fetch anything. */
const hasRemote = (mail: string): boolean =>
  /\b(src|srcset|background)\s*=|url\(/i.test(mail) && /https?:|\/\//i.test(mail);

export function MailView({ mail, title }: { mail: string; title: string }): VNode {
  const frame = useRef<HTMLIFrameElement>(null);
  const [areImagesShown, showImages] = useState(false);
  const [height, setHeight] = useState(LEAST_HEIGHT);
  const [link, setLink] = useState<string>();

  // At once: the frame says that it is ready only once.
  useLayoutEffect(() => {
    function hear({ source, data }: MessageEvent): void {
      if (source !== frame.current?.contentWindow || typeof data !== "object" || data === null) return;
      if (data.ready === true) frame.current?.contentWindow?.postMessage({ html: mail }, "*");
      if (typeof data.height === "number") setHeight(Math.min(Math.max(data.height, LEAST_HEIGHT), MOST_HEIGHT));
      if (typeof data.link === "string") setLink(data.link);
    }
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, [mail]);

  const images = areImagesShown ? "with-images" : "without-images";
  const target = link === undefined ? undefined : safeLink(link, location.href);
  return html`<div class="mail">
    ${
      hasRemote(mail) &&
      !areImagesShown &&
      html`<p class="mail-bar">Images from elsewhere are not loaded.
      <button type="button" class="small" onClick=${() => showImages(true)}>Load images</button></p>`
    }
    <iframe ref=${frame} key=${`${images} ${mail}`} title=${title} src=${`/dashboard/mail/${images}`} sandbox="allow-scripts"
      referrerpolicy="no-referrer" height=${height}></iframe>
    ${
      link !== undefined &&
      html`<p class="mail-bar" role="status">The link leads to
      ${target ? html` <a href=${target.href} target="_blank" rel="noopener noreferrer">${target.href}</a>` : html` <code>${link}</code>, which is not opened from here`}.</p>`
    }
  </div>`;
}
