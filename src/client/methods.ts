// How each operation of the API is called by the client: a name, and what it takes. From this table the methods are made (bind.ts), their
// types written (generated.ts), the operations of the OpenAPI document named, and the examples of /docs written. What it takes, in order:
//
//   id          a part of the path
//   body        the body; body.reason  one field of it
//   query       the query; query.count  one parameter of it
//   "channel"   the word itself, which tells operations of one name apart
//   raw         the body as it is, with its headers
//
// A new route needs its line here, and `CARILLON_WRITE=1 node test/run.ts test/client/generated.test.ts`.

export const METHODS: { readonly [operation: string]: string } = {
  "POST /v1/notifications": "send(body)",
  "POST /v1/notifications/batch": "sendBatch(body.notifications)",
  "GET /v1/notifications": "list(query)",
  "GET /v1/notifications/:id": "get(id)",
  "PATCH /v1/notifications/:id": "reschedule(id, body)",
  "POST /v1/notifications/:id/cancel": "cancel(id)",
  "POST /v1/notifications/:id/retry": "retry(id)",
  "POST /v1/explain": "explain(body)",
  "GET /v1/events": "events.list(query)",
  "GET /v1/schedules": "schedules.list(query)",
  "PUT /v1/schedules/:key": "schedules.put(key, body)",
  "GET /v1/schedules/:key": "schedules.get(key)",
  "DELETE /v1/schedules/:key": "schedules.delete(key)",
  "GET /v1/schedules/:key/next": "schedules.next(key, query.count)",
  "GET /v1/schedules/:key/runs": "schedules.runs(key, query)",
  "POST /v1/schedules/:key/pause": "schedules.pause(key)",
  "POST /v1/schedules/:key/resume": "schedules.resume(key)",
  "GET /v1/reminders": "reminders.list(query)",
  "PUT /v1/reminders/:key": "reminders.put(key, body)",
  "GET /v1/reminders/:key": "reminders.get(key)",
  "DELETE /v1/reminders/:key": "reminders.delete(key)",
  "GET /v1/reminder-scopes": "reminders.listScopes(query)",
  "PUT /v1/reminder-scopes/:scope": "reminders.putScope(scope, body.before)",
  "GET /v1/reminder-scopes/:scope": "reminders.getScope(scope)",
  "DELETE /v1/reminder-scopes/:scope": "reminders.deleteScope(scope)",
  "POST /v1/endpoints": "endpoints.create(body)",
  "GET /v1/endpoints": "endpoints.list()",
  "GET /v1/endpoints/:id": "endpoints.get(id)",
  "PATCH /v1/endpoints/:id": "endpoints.change(id, body)",
  "DELETE /v1/endpoints/:id": "endpoints.delete(id)",
  "POST /v1/endpoints/:id/pause": "endpoints.pause(id, body.reason)",
  "POST /v1/endpoints/:id/resume": "endpoints.resume(id)",
  "POST /v1/endpoints/:id/rotate": "endpoints.rotate(id, body)",
  "POST /v1/endpoints/:id/test": "endpoints.test(id, body)",
  "POST /v1/endpoints/:id/replay": "endpoints.replay(id, body)",
  "GET /v1/endpoints/:id/deliveries": "endpoints.deliveries(id, query)",
  "GET /v1/callback-dead-letters": "callbackDeadLetters.list(query)",
  "POST /v1/callback-dead-letters/requeue": "callbackDeadLetters.requeue(body)",
  "GET /v1/dead-letters": "deadLetters.list(query)",
  "GET /v1/dead-letters/groups": "deadLetters.groups(query)",
  "POST /v1/dead-letters/requeue": "deadLetters.requeue(body)",
  "POST /v1/plans": "plans.create(body)",
  "GET /v1/plans": "plans.list(query)",
  "GET /v1/plans/:id": "plans.get(id)",
  "POST /v1/plans/:id/apply": "plans.apply(id, body)",
  "POST /v1/plans/:id/continue": "plans.continue(id)",
  "POST /v1/plans/:id/abort": "plans.abort(id)",
  "GET /v1/templates": "templates.list(query)",
  "PUT /v1/templates/:id": "templates.put(id, body)",
  "GET /v1/templates/:id": "templates.get(id, query)",
  "DELETE /v1/templates/:id": "templates.delete(id)",
  "GET /v1/templates/:id/versions": "templates.versions(id, query)",
  "POST /v1/templates/:id/activate": "templates.activate(id, body.version)",
  "POST /v1/templates/:id/preview": "templates.preview(id, body)",
  "GET /v1/users/:userId/devices": "devices.list(userId)",
  "PUT /v1/users/:userId/devices/:token": "devices.put(userId, token, body)",
  "DELETE /v1/users/:userId/devices/:token": "devices.delete(userId, token)",
  "GET /v1/suppressions": "suppressions.list(query)",
  "PUT /v1/suppressions/:address": "suppressions.put(address, body)",
  "DELETE /v1/suppressions/:address": "suppressions.delete(address)",
  "GET /v1/providers": "providers()",
  "POST /v1/providers/:name/test": "testProvider(name)",
  "POST /v1/providers/:name/events": "report(name, raw)",
  "PUT /v1/providers/:name": "accounts.put(name, body)",
  "DELETE /v1/providers/:name": "accounts.delete(name)",
  "GET /v1/costs": "costs(query)",
  "GET /v1/sources": "sources.list()",
  "POST /v1/sources/:name/pause": "sources.pause(name, body.reason)",
  "POST /v1/sources/:name/resume": "sources.resume(name)",
  "GET /v1/sinks": "sinks.list()",
  "POST /v1/sinks/:name/pause": "sinks.pause(name, body.reason)",
  "POST /v1/sinks/:name/resume": "sinks.resume(name)",
  "POST /v1/sinks/:name/replay": "sinks.replay(name, body.since)",
  "DELETE /v1/sinks/:name": "sinks.forget(name)",
  "GET /v1/refusals": "refusals.list(query)",
  "GET /v1/dev/messages": "dev.messages.list(query)",
  "GET /v1/dev/messages/:id": "dev.messages.get(id)",
  "GET /v1/dev/messages/:id/source": "dev.messages.source(id)",
  "GET /v1/dev/messages/:id/attachments/:index": "dev.messages.attachment(id, index)",
  "DELETE /v1/dev/messages/:id": "dev.messages.delete(id)",
  "DELETE /v1/dev/messages": "dev.messages.clear()",
  "GET /v1/inbox/:userId": "inbox.list(userId, query)",
  "GET /v1/inbox/:userId/unread": "inbox.unread(userId)",
  "POST /v1/inbox/:userId/ack": "inbox.ack(userId, body.ids)",
  "POST /v1/inbox/:userId/read": "inbox.read(userId, body.ids)",
  "POST /v1/inbox/:userId/archive": "inbox.archive(userId, body.ids)",
  "POST /v1/inbox/:userId/read-all": "inbox.readAll(userId, body)",
  "POST /v1/inbox/:userId/tokens": "inbox.token(userId, body)",
  "POST /v1/inbox/:userId/session": "inbox.beginSession(userId)",
  "DELETE /v1/inbox/:userId/session": "inbox.endSession(userId)",
  "GET /v1/inbox/:userId/stream": "inbox.follow(userId, query)",
  "GET /v1/queue": "queue()",
  "POST /v1/queue/migration": "migration.begin(body)",
  "GET /v1/queue/migration": "migration.get()",
  "DELETE /v1/queue/migration": "migration.abort()",
  "GET /v1/ledger": "ledger()",
  "GET /v1/statistics": "statistics(query)",
  "GET /v1/workers": "workers()",
  "POST /v1/channels/:name/pause": 'pause("channel", name, body)',
  "POST /v1/channels/:name/resume": 'resume("channel", name)',
  "POST /v1/providers/:name/pause": 'pause("provider", name, body)',
  "POST /v1/providers/:name/resume": 'resume("provider", name)',
  "POST /v1/tenants/:name/pause": 'pause("tenant", name, body)',
  "POST /v1/tenants/:name/resume": 'resume("tenant", name)',
  "GET /v1/pauses": "pauses()",
  "GET /v1/tenants": "tenants.list(query)",
  "PATCH /v1/tenants/:name": "tenants.weigh(name, body.weight)",
  "DELETE /v1/users/:userId": "users.delete(userId)",
  "GET /v1/users/:userId/deletion": "users.deletion(userId)",
  "GET /v1/users/:userId/export": "users.exportPage(userId, query)",
  "GET /v1/audit": "audit(query)",
  "GET /v1/keys": "keys.list()",
  "POST /v1/keys": "keys.create(body)",
  "DELETE /v1/keys/:id": "keys.revoke(id)",
  "POST /v1/sessions": "sessions.begin(body)",
  "GET /v1/sessions": "sessions.show()",
  "DELETE /v1/sessions": "sessions.end()",
  "GET /health": "health()",
  "GET /ready": "ready()",
  "GET /live": "live()",
  "GET /metrics": "metrics()",
};

/** Asked once: an answer that was lost is not asked for again, since that would be another secret, another post or another plan. */
export const ONCE: ReadonlySet<string> = new Set([
  "POST /v1/endpoints",
  "POST /v1/endpoints/:id/rotate",
  "POST /v1/endpoints/:id/test",
  "POST /v1/endpoints/:id/replay",
  "POST /v1/keys",
  "POST /v1/plans",
  "POST /v1/plans/:id/apply",
  "POST /v1/plans/:id/continue",
  "POST /v1/plans/:id/abort",
  "POST /v1/sessions",
]);

export type Signature = { names: string[]; args: string[] };

/** `schedules.pause(key)`, read. */
export function signatureOf(written: string): Signature {
  const [, name = "", args = ""] = /^([\w.]+)\((.*)\)$/.exec(written) ?? [];
  return { names: name.split("."), args: args === "" ? [] : args.split(", ") };
}

/** Names the operation: `schedulesPause`, `pauseChannel`. */
export function idOf(written: string): string {
  const { names, args } = signatureOf(written);
  const words = [...names, ...args.filter((arg) => arg.startsWith('"')).map((arg) => arg.slice(1, -1))];
  return words.map((word, n) => (n === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join("");
}
