// The script of /demo. What it does with the key belongs on a server: a page that users see gets a token from there.

const byId = <Kind extends Element>(id: string, kind: new () => Kind): Kind => {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
};
const connect = byId("connect", HTMLFormElement);
const send = byId("send", HTMLFormElement);
const said = byId("said", HTMLOutputElement);
const textOf = (form: HTMLFormElement, name: string): string => String(new FormData(form).get(name) ?? "").trim();

async function post(path: string, body: unknown): Promise<{ [name: string]: unknown }> {
  const response = await fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${textOf(connect, "key")}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.code ?? response.status}: ${answer.detail ?? response.statusText}`);
  return answer;
}

const mint = async (userId: string): Promise<string> =>
  String((await post(`/v1/inbox/${encodeURIComponent(userId)}/tokens`, {})).token);

/** Says what went wrong, if something did. */
function trying(step: () => Promise<string>): void {
  step().then(
    (text) => {
      said.value = text;
    },
    (error: unknown) => {
      said.value = error instanceof Error ? error.message : String(error);
    },
  );
}

connect.addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const userId = textOf(connect, "userId");
    const token = await mint(userId);
    for (const place of document.querySelectorAll<HTMLElement>(".place")) {
      const inbox = document.createElement("carillon-inbox");
      inbox.setAttribute("user-id", userId);
      inbox.setAttribute("theme", place.dataset.theme ?? "light");
      inbox.setAttribute("token", token);
      inbox.addEventListener("carillon-unauthorized", () =>
        trying(async () => {
          inbox.setAttribute("token", await mint(userId));
          return "The token had run out; a new one is in its place";
        }),
      );
      place.replaceChildren(inbox);
    }
    send.querySelector("button")?.removeAttribute("disabled");
    return `Connected as ${userId}`;
  });
});

send.addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const count = Number(textOf(send, "count")) || 1;
    const [title, body, link, category] = ["title", "body", "link", "category"].map((name) => textOf(send, name));
    for (let n = 1; n <= count; n++) {
      await post("/v1/notifications", {
        channel: "inbox",
        recipient: { userId: textOf(connect, "userId") },
        content: {
          title: count > 1 ? `${title} (${n})` : title,
          body: body || " ",
          ...(link && { clickAction: link }),
          ...(category && { data: { category } }),
        },
      });
    }
    return count === 1 ? "Sent" : `${count} sent`;
  });
});
