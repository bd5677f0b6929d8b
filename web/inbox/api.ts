// The inbox routes, as the browser calls them. What can go wrong is a value: the page must go on.

export type InboxNotification = {
  id: string;
  title?: string | null;
  body?: string | null;
  link?: string | null;
  category?: string | null;
  data?: unknown;
  createdAt: string;
  readAt: string | null;
  archivedAt?: string | null;
};

export type Page = {
  data: InboxNotification[];
  unread: number;
  /** Where the inbox stood: a stream from there misses nothing that is not in the list. */
  position: string;
  nextCursor: string | null;
};
/** Where a stream goes on: after the last event that came, or after a list. */
export type Resume = { lastEventId: string } | { after: string };
export type Verb = "ack" | "read" | "archive" | "read-all";
export type Failure = "unauthorized" | "unreachable";
export type Asked<Value> = { ok: true; value: Value } | { ok: false; failure: Failure };

export type InboxApi = {
  list(query: { [name: string]: string | undefined }): Promise<Asked<Page>>;
  mark(verb: Verb, body: { [name: string]: unknown }): Promise<Asked<{ unread?: number }>>;
  stream(resume: Resume | undefined, signal: AbortSignal): Promise<Response>;
  /** The token of the latest request, to tell whether a refusal is about the one we have now. */
  usedToken(): string | undefined;
};

const EVENTS = { accept: "text/event-stream" };

export const isUnauthorized = ({ status }: Response): boolean => status === 401 || status === 403;

/** Without a token the browser's cookie says who asks. */
export function createInboxApi(url: string, userId: string, token: () => string | undefined): InboxApi {
  const base = `${url.replace(/\/+$/, "")}/v1/inbox/${encodeURIComponent(userId)}`;
  let used: string | undefined;

  function request(path: string, init: RequestInit, headers: { [name: string]: string }): Promise<Response> {
    used = token();
    return fetch(base + path, {
      ...init,
      cache: "no-store",
      credentials: used ? "omit" : "include",
      headers: used ? { ...headers, authorization: `Bearer ${used}` } : headers,
    });
  }

  async function ask<Value>(path: string, init: RequestInit, headers: { [name: string]: string }) {
    try {
      const response = await request(path, init, headers);
      if (!response.ok) return failed(isUnauthorized(response) ? "unauthorized" : "unreachable");
      const value: Value = JSON.parse((await response.text()) || "{}");
      return { ok: true as const, value };
    } catch {
      return failed("unreachable");
    }
  }

  return {
    list(query) {
      const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
      return ask<Page>(`?${new URLSearchParams(given)}`, {}, {});
    },
    // Marking often comes with a click that leaves the page: the request must outlive it.
    mark: (verb, body) =>
      ask<{ unread?: number }>(
        `/${verb}`,
        { method: "POST", body: JSON.stringify(body), keepalive: true },
        { "content-type": "application/json" },
      ),
    stream: (resume = { after: "" }, signal) =>
      "after" in resume
        ? request(`/stream${resume.after && `?${new URLSearchParams(resume)}`}`, { signal }, EVENTS)
        : request("/stream", { signal }, { ...EVENTS, "last-event-id": resume.lastEventId }),
    usedToken: () => used,
  };
}

const failed = (failure: Failure) => ({ ok: false as const, failure });
