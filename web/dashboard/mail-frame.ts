// Runs alone in the frame that shows a mail: an origin without a name, no network, nothing of the dashboard within reach. Takes the
// HTML as a message, and tells how high it is and which link was clicked. Scripts of the mail do not run: the frame's policy
// allows this one only.

const LEFT_OUT = "script, base, link, iframe, frame, object, embed, meta[http-equiv]";

addEventListener("message", ({ source, data }: MessageEvent) => {
  if (source !== parent || typeof data?.html !== "string") return;
  const mail = new DOMParser().parseFromString(data.html, "text/html");
  for (const element of mail.querySelectorAll(LEFT_OUT)) element.remove();
  document.replaceChild(document.adoptNode(mail.documentElement), document.documentElement);
  const tellHeight = () =>
    parent.postMessage({ height: Math.ceil(document.documentElement.getBoundingClientRect().height) }, "*");
  new ResizeObserver(tellHeight).observe(document.body);
  tellHeight();
});
addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href], area[href]") : null;
  if (!link) return;
  event.preventDefault();
  parent.postMessage({ link: link.getAttribute("href") }, "*");
});
parent.postMessage({ ready: true }, "*");
