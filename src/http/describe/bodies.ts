// What a request may look like, by operation. Those not named here show the fields that must be there.

import { EXAMPLE_ID, EXAMPLE_INSTANT } from "./examples.ts";

const recipient = { userId: "u_17", email: "ana@example.com" };
const content = { subject: "Your order has shipped", textBody: "It will be with you on Tuesday." };
const mail = { channel: "email", recipient, content };
const reason = "moving to another provider";

export const BODIES: { readonly [operationId: string]: unknown } = {
  send: { ...mail, priority: "high", idempotencyKey: "order-17-shipped", metadata: { orderId: "17" } },
  sendBatch: {
    notifications: [
      mail,
      { channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "It will be with you on Tuesday." } },
    ],
  },
  explain: mail,
  reschedule: { scheduledFor: EXAMPLE_INSTANT },
  schedulesPut: { cron: "0 9 * * 1", timezone: "Europe/Paris", notification: mail },
  remindersPut: {
    at: EXAMPLE_INSTANT,
    before: ["P1D", "PT1H"],
    notification: { channel: "inbox", recipient: { userId: "u_17" }, content: { title: "It begins in {{ before }}" } },
  },
  remindersPutScope: { before: ["P1D", "PT1H"] },
  endpointsCreate: { url: "https://app.example.com/callbacks", events: ["delivered", "failed"] },
  endpointsChange: { description: "the shop's backend" },
  endpointsRotate: { keepSeconds: 3600 },
  endpointsTest: { url: "https://app.example.com/callbacks" },
  endpointsReplay: { since: EXAMPLE_INSTANT, dryRun: true },
  callbackDeadLettersRequeue: { filter: { since: EXAMPLE_INSTANT }, dryRun: true },
  deadLettersRequeue: { filter: { channel: "email", since: EXAMPLE_INSTANT }, dryRun: true },
  plansCreate: { kind: "requeue", filter: { channel: "email", since: EXAMPLE_INSTANT } },
  plansApply: { canary: 10, continue: "sent" },
  migrationBegin: { to: "redis", strategy: "live-forward" },
  templatesPut: {
    channel: "email",
    name: "Welcome",
    content: { subject: "Welcome, {{ name }}", textBody: "Hello {{ name }}" },
  },
  templatesPreview: { variables: { name: "Ana" } },
  devicesPut: { platform: "android" },
  suppressionsPut: { reason: "asked us to stop" },
  accountsPut: { type: "smtp", host: "smtp.example.com", from: "shop@example.com" },
  inboxAck: { ids: [EXAMPLE_ID] },
  inboxRead: { ids: [EXAMPLE_ID] },
  inboxArchive: { ids: [EXAMPLE_ID] },
  inboxReadAll: { category: "orders" },
  inboxToken: { expiresInSeconds: 3600 },
  pauseChannel: { reason, until: EXAMPLE_INSTANT },
  pauseProvider: { reason },
  pauseTenant: { reason },
  keysCreate: { name: "ci", scopes: ["send", "read"] },
};
