// Two tenants on one Carillon. One floods it with nothing but a `send` key; of the other it is counted how many of the flood were
// begun before its own. The worker comes when the flood is there, so that it meets all of it.

import assert from "node:assert/strict";
import type { Message } from "#channels/channel.ts";
import type { TestProviderOptions } from "#channels/dev/test.ts";
import type { Config } from "#config/read.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { type Service, startService } from "./service.ts";
import { until } from "./until.ts";

export type Side = "hostile" | "other";
export type Neighbours = {
  service: Service;
  /** Starts the worker. */
  work(): Promise<void>;
  keys: { [side in Side]: string };
  sides: ReadonlyMap<number, Side>;
  /** Of those that went through the test provider, in the order in which they were begun. */
  begun: Message[];
  begunOf(side: Side): number;
  send(side: Side, requests: readonly NotificationRequest[]): Promise<string[]>;
  /** How many were begun before it, once it is. */
  placeOf(id: string): Promise<number>;
  /** Sends one for the other; how many of the hostile one's were begun from then until it was. */
  passedBy(request: NotificationRequest): Promise<number>;
  stop(): Promise<void>;
};

const PER_CALL = 1_000;

export const mail = (more: Partial<NotificationRequest> = {}): NotificationRequest => ({
  channel: "email",
  recipient: { email: "ada@example.com" },
  content: { subject: "s", textBody: "t" },
  ...more,
});

/** `post` carries everything but webhooks, which go to their URLs. */
export async function startNeighbours(post: TestProviderOptions, config: Partial<Config> = {}): Promise<Neighbours> {
  const begun: Message[] = [];
  const onSend = (message: Message) => void begun.push(message);
  const shared: Partial<Config> = {
    providers: { post: { type: "test", ...post, onSend }, hooks: { type: "webhook" } },
    routes: { email: "post", sms: "post", webhook: "hooks" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
    concurrency: 10,
    batchSize: 100,
    ...config,
  };
  const service = await startService({ ...shared, roles: ["api"] });
  let worker: Service | undefined;
  const keys = { hostile: "", other: "" };
  const sides = new Map<number, Side>();
  for (const side of ["hostile", "other"] as const) {
    keys[side] = await service.makeKey({ tenant: side, scopes: ["send"] });
    const { rows } = await service.db.query("select id from carillon.tenants where name = $1", [side]);
    sides.set(rows[0].id, side);
  }
  const begunOf = (side: Side) => begun.filter(({ tenant }) => sides.get(tenant) === side).length;
  const isHostile = ({ tenant }: Message) => sides.get(tenant) === "hostile";
  const placeOf = (sought: string) =>
    until(async () => {
      const place = begun.findIndex(({ notificationId }) => notificationId === sought);
      return place === -1 ? undefined : place;
    });

  async function send(side: Side, requests: readonly NotificationRequest[]): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < requests.length; n += PER_CALL) {
      const notifications = requests.slice(n, n + PER_CALL);
      const answer = await service.ask("POST", "/v1/notifications/batch", { notifications }, { key: keys[side] });
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      ids.push(...answer.body.results.map(({ notificationId }: { notificationId: string }) => notificationId));
    }
    return ids;
  }

  return {
    service,
    async work() {
      const roles: Config["roles"] = ["worker", "scheduler", "keeper"];
      worker = await startService({ ...shared, roles, databaseUrl: service.databaseUrl });
    },
    keys,
    sides,
    begun,
    begunOf,
    send,
    placeOf,
    async passedBy(request) {
      const [id = ""] = await send("other", [request]);
      // From when it was there: how long it took to be accepted is another matter.
      const before = begunOf("hostile");
      const place = await placeOf(id);
      return begun.slice(0, place).filter(isHostile).length - before;
    },
    async stop() {
      await worker?.stop();
      await service.stop();
    },
  };
}

export const many = <Item>(count: number, item: (n: number) => Item): Item[] =>
  Array.from({ length: count }, (_, n) => item(n));
