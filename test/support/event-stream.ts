// Reads server-sent events as a browser would.

export type StreamEvent = { name: string; data: string; id: string | undefined };

export type EventStream = {
  status: number;
  headers: Headers;
  /** The next event of that name, or of any; waits for it. */
  next(name?: string): Promise<StreamEvent>;
  /** Events that came and were not asked for yet. */
  waiting(): StreamEvent[];
  retries: number[];
  comments(): number;
  /** The body, if it is a problem instead. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the service answered, and fails if it is not there
  problem: any;
  /** Resolves when the server ends the stream, or the connection breaks. */
  ended: Promise<void>;
  close(): void;
};

const PATIENCE_MS = 15_000;

export async function openStream(url: string, headers: { [name: string]: string } = {}): Promise<EventStream> {
  const abort = new AbortController();
  // Whoever is killed may leave its port to somebody who never answers.
  const patience = setTimeout(() => abort.abort(), PATIENCE_MS);
  const answer = await fetch(url, { headers, signal: abort.signal }).finally(() => clearTimeout(patience));
  const arrived: StreamEvent[] = [];
  const retries: number[] = [];
  const seekers = new Set<() => void>();
  let comments = 0;
  let isOver = false;
  const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream");
  const problem = isStream ? undefined : await answer.json();

  function take(block: string): void {
    let name = "message";
    let id: string | undefined;
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (line.startsWith(":")) comments++;
      else if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") id = value;
      else if (field === "retry") retries.push(Number(value));
    }
    if (data.length > 0) arrived.push({ name, data: data.join("\n"), id });
    for (const seek of seekers) seek();
  }

  async function read(): Promise<void> {
    let text = "";
    try {
      for await (const part of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
        text += part;
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) take(block);
      }
    } catch {
      // Cut off, by us or by the server.
    }
    isOver = true;
    for (const seek of seekers) seek();
  }
  const ended = isStream ? read() : Promise.resolve();

  return {
    status: answer.status,
    headers: answer.headers,
    next: (name) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          seekers.delete(seek);
          reject(new Error(`no ${name ?? "event"} came; others: ${JSON.stringify(arrived)}`));
        }, PATIENCE_MS);
        const seek = () => {
          const at = arrived.findIndex((event) => name === undefined || event.name === name);
          if (at === -1 && !isOver) return;
          clearTimeout(timer);
          seekers.delete(seek);
          const [found] = at === -1 ? [] : arrived.splice(at, 1);
          if (found) resolve(found);
          else reject(new Error(`the stream ended before ${name ?? "an event"} came`));
        };
        seekers.add(seek);
        seek();
      }),
    waiting: () => arrived,
    retries,
    comments: () => comments,
    problem,
    ended,
    close: () => abort.abort(),
  };
}
