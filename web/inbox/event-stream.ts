// Reads text/event-stream from a fetch, because EventSource cannot send an Authorization header and a token must not
// travel in a URL. Where the standard leaves room, this does what browsers do.

export type StreamEvent = { name: string; data: string; id: string | undefined };

export type EventReader = { feed(text: string): void };

export function createEventReader(
  onEvent: (event: StreamEvent) => void,
  onRetry: (retryMs: number) => void,
): EventReader {
  let rest = "";
  let name = "";
  let data: string[] = [];
  let id: string | undefined;

  function line(text: string): void {
    if (text === "") {
      // An event without data carries no news, but its id still says how far the stream has come.
      if (data.length > 0 || id !== undefined) onEvent({ name: name || "message", data: data.join("\n"), id });
      name = "";
      data = [];
      id = undefined;
      return;
    }
    const colon = text.indexOf(":");
    const field = colon === -1 ? text : text.slice(0, colon);
    const value = colon === -1 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) onRetry(Number(value));
  }

  return {
    feed(text) {
      const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const each of lines) line(each);
    },
  };
}
