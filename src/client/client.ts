// A typed client of the HTTP API, on nothing but fetch: runs in Node, Deno, Bun and browsers.
//
// Sends are retried through lost answers and outages. That is safe, because each carries an
// idempotency key: the caller's, or one that the client makes and keeps through all its tries.
// What each operation is called stands in methods.ts, its types in generated.ts.

import { bind } from "./bind.ts";
import { type CallOptions, type ClientOptions, createCall } from "./call.ts";
import { CarillonError, type ProblemBody, UnreachableError } from "./error.ts";
import { type FactFilters, followFacts, followInbox } from "./events.ts";
import type {
  DevMessagesListQuery,
  Fact,
  GeneratedClient,
  KeptMessage,
  KnownOfUser,
  ListQuery,
  NotificationRecord,
  NotificationRequest,
  Page,
} from "./generated.ts";
import { createFollow } from "./stream.ts";

export type * from "./aliases.ts";
export type { FactFilters, InboxEvent } from "./events.ts";
export type * from "./generated.ts";
// biome-ignore lint/performance/noBarrelFile: whoever receives callbacks and whoever sends come by one door, carillon/client
export {
  type CallbackBody,
  CallbackError,
  type CallbackHeaders,
  type VerifyOptions,
  verifyCallback,
} from "./verify-callback.ts";
export type { CallOptions, ClientOptions };
export { CarillonError, type ProblemBody, UnreachableError };

type MessageFilters = Omit<DevMessagesListQuery, "wait">;

export type Client = GeneratedClient & {
  /** Every notification that fits, page after page. */
  listAll(filters?: ListQuery, options?: CallOptions): AsyncGenerator<NotificationRecord, void>;
  events: {
    /**
     * What happens, as it happens, until the loop is left or the signal aborts. Without `after` and `since` it begins now. It comes back by itself,
     * for ever unless `maxAttempts` says after how many failures in a row it gives up. Throws RESET with `next`, and whatever else the server refuses.
     */
    follow(filters?: FactFilters, options?: CallOptions): AsyncGenerator<Fact, void>;
  };
  dev: {
    messages: {
      /** The messages that fit, as soon as there is one; none when the time is over. `seconds` is 10 unless said, and 60 at most. */
      wait(filters?: MessageFilters & { seconds?: number }, options?: CallOptions): Promise<KeptMessage[]>;
    };
  };
  users: {
    /** All that is known of a person, page after page. */
    export(userId: string, options?: CallOptions): AsyncGenerator<KnownOfUser, void>;
  };
};

export function createClient(options: ClientOptions): Client {
  // The table makes the methods, and the types are written from the same table: test/client/generated.test.ts holds them together.
  const api = bind(createCall(options)) as unknown as GeneratedClient;
  const follow = createFollow(options);
  return {
    ...api,
    send: (request, callOptions) => api.send(withKey(request), callOptions),
    sendBatch: (requests, callOptions) => api.sendBatch(requests.map(withKey), callOptions),
    async cancel(id, callOptions) {
      try {
        return await api.cancel(id, callOptions);
      } catch (error) {
        if (!(error instanceof CarillonError) || error.code !== "NOT_CANCELLABLE") throw error;
        return { notificationId: id, cancelled: false, reason: error.problem.detail ?? error.message };
      }
    },
    listAll: (filters, callOptions) => pages((cursor) => api.list({ ...filters, ...cursor }, callOptions)),
    events: { ...api.events, follow: (filters, callOptions) => followFacts(follow, filters, callOptions) },
    inbox: { ...api.inbox, follow: (userId, query, opts) => followInbox(follow, userId, query, opts) },
    dev: { ...api.dev, messages: { ...api.dev.messages, wait: waiting(api) } },
    users: {
      ...api.users,
      export: (userId, callOptions) => pages((cursor) => api.users.exportPage(userId, cursor, callOptions)),
    },
  };
}

/** The answer comes when the time is over, and then has to arrive. */
const SLACK_MS = 10_000;

const waiting =
  (api: GeneratedClient): Client["dev"]["messages"]["wait"] =>
  async ({ seconds = 10, ...filters } = {}, options) => {
    const timeoutMs = seconds * 1000 + SLACK_MS;
    return (await api.dev.messages.list({ ...filters, wait: `${seconds}s` }, { timeoutMs, ...options })).data;
  };

const withKey = (request: NotificationRequest): NotificationRequest => ({
  ...request,
  idempotencyKey: request.idempotencyKey ?? crypto.randomUUID(),
});

async function* pages<Item>(read: (cursor: { cursor?: string }) => Promise<Page<Item>>): AsyncGenerator<Item, void> {
  let cursor: string | null = null;
  do {
    const page: Page<Item> = await read(cursor === null ? {} : { cursor });
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor !== null);
}
