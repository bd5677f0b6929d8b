// A member of the group from joining to its first failure: fetches for the partitions that it was given, a lane for each.

import { clientOptions, hearErrors, type KafkaPackage } from "#wire/kafka-client.ts";
import { type Consuming, fetchOnce, firstOf, leave, OUT_OF_RANGE, startsOf, topicOf } from "./kafka-asking.ts";
import { KafkaLane } from "./kafka-lane.ts";
import { type Fetched, messagesOf } from "./kafka-records.ts";
import { RefusalsTopic } from "./kafka-refusals.ts";
import type { SettingsOfSource } from "./settings.ts";
import type { Keeping } from "./source.ts";

export type SessionSettings = SettingsOfSource<"kafka"> & { group: string };
/** `anew`: there is a reason to begin again, but nothing is wrong. */
export type SessionEnd = { kind: "anew" } | { kind: "failed"; error: unknown };

/** Whoever ended without a word is missed after so long; then others get its partitions. */
const SESSION_MS = 10_000;
const HEARTBEAT_MS = 3_000;
const REBALANCE_MS = 30_000;
/** How long the broker waits for messages; less where a lane without room would like to be asked for meanwhile. */
const WAIT_MS = 500;
const SHORT_WAIT_MS = 50;
/** What waits in memory, over all partitions; twice that for a moment. */
const MOST_BYTES = 32 * 1024 * 1024;
const MOST_LANE_BYTES = 4 * 1024 * 1024;
const LEAST_LANE_BYTES = 64 * 1024;
/** A broker that says nothing for so long is asked anew. */
const SILENT_MS = 60_000;
/** So often a partition is tried for which there was no way on. */
const REST_MS = 30_000;
const TICK_MS = 1_000;
const TELL_EVERY = 30;

export class KafkaSession {
  /** Whether a fetch was ever answered. */
  hasRead = false;
  readonly #settings: SessionSettings;
  readonly #keeping: Keeping;
  readonly #consumer: Consuming;
  readonly #refusals: RefusalsTopic | undefined;
  readonly #lanes = new Map<number, KafkaLane>();
  /** By broker, since when. */
  readonly #underWay = new Map<number, number>();
  readonly #ended: Promise<SessionEnd>;
  readonly #committed = new Map<number, number>();
  #end: (end: SessionEnd) => void = () => undefined;
  #isOver = false;
  #assigning: Promise<void> = Promise.resolve();
  #partitions: number | undefined;
  #ticks = 0;

  constructor(kafka: KafkaPackage, settings: SessionSettings, keeping: Keeping) {
    this.#settings = settings;
    this.#keeping = keeping;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    const options = {
      ...clientOptions(settings, "carillon"),
      retries: 2,
      retryDelay: 250,
      requestTimeout: SILENT_MS / 2,
    };
    this.#consumer = new kafka.Consumer({
      ...options,
      groupId: settings.group,
      autocommit: false,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
    });
    hearErrors(this.#consumer);
    if (settings.refusals !== undefined) this.#refusals = new RefusalsTopic(kafka, options, settings.refusals, keeping);
  }

  /** Resolves with why it ended, once all of it has; never rejects. */
  async run(): Promise<SessionEnd> {
    const consumer = this.#consumer;
    const failed = (error: unknown) => this.end({ kind: "failed", error });
    consumer.on("error" as "client:close", failed as () => void);
    consumer.on("consumer:heartbeat:stalled", ({ lastError }) =>
      failed(lastError ?? new Error("the group does not answer")),
    );
    consumer.on("consumer:group:join", ({ assignments = [] }) => {
      const mine = assignments.find(({ topic }) => topic === this.#settings.topic)?.partitions ?? [];
      // One after the other, as the last one counts.
      this.#assigning = this.#assigning.then(() => this.#assign(mine)).catch(failed);
    });
    const ticking = setInterval(() => this.#tick(), TICK_MS);
    this.#join().catch(failed);
    const end = await this.#ended;
    clearInterval(ticking);
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
    await this.#commit().catch(() => undefined);
    await Promise.all([leave(consumer), this.#refusals?.close()]);
    return end;
  }

  end(end: SessionEnd): void {
    this.#isOver = true;
    this.#end(end);
  }

  lag(): number | undefined {
    if (!this.hasRead) return undefined;
    let lag = 0;
    for (const { end, kept } of this.#lanes.values()) lag += Math.max(0, (end ?? kept) - kept);
    return lag;
  }

  async #join(): Promise<void> {
    const { topic } = this.#settings;
    const { partitionsCount } = await topicOf(this.#consumer, topic);
    this.#partitions = partitionsCount;
    this.#consumer.topics.track(topic);
    await this.#consumer.joinGroup({});
  }

  /** Those that it keeps go on as they are. */
  async #assign(partitions: readonly number[]): Promise<void> {
    const { topic } = this.#settings;
    for (const [partition, lane] of this.#lanes) {
      if (partitions.includes(partition)) continue;
      this.#lanes.delete(partition);
      // Another has it now. What is being kept here is, or finds that it is kept elsewhere.
      lane.close();
    }
    const fresh = partitions.filter((partition) => !this.#lanes.has(partition));
    const starts = fresh.length === 0 ? [] : await startsOf(this.#consumer, this.#settings, this.#keeping, fresh);
    if (this.#isOver) return;
    for (const { partition, from } of starts) {
      const lane: KafkaLane = new KafkaLane({
        topic,
        partition,
        from,
        keeping: this.#keeping,
        onRefused: (refused, batch) => this.#refusals?.tell(refused, batch),
        onMoved: () => this.#fetchAll(),
      });
      this.#lanes.set(partition, lane);
    }
    this.#fetchAll();
  }

  /** One fetch at a time for each broker, for all lanes with room. */
  #fetchAll(): void {
    if (this.#isOver) return;
    this.#fetchFree().catch((error: unknown) => this.end({ kind: "failed", error }));
  }

  async #fetchFree(): Promise<void> {
    const topic = await topicOf(this.#consumer, this.#settings.topic);
    if (this.#isOver) return;
    // Only whoever joins anew has the group share them out anew.
    if (topic.partitionsCount !== this.#partitions) return this.end({ kind: "anew" });
    const mostBytes = Math.min(MOST_LANE_BYTES, Math.max(LEAST_LANE_BYTES, Math.floor(MOST_BYTES / this.#lanes.size)));
    const byNode = new Map<number, { lanes: KafkaLane[]; isSomeFull: boolean }>();
    for (const lane of this.#lanes.values()) {
      if (lane.restsUntil > performance.now()) continue;
      const node = topic.partitions[lane.partition]?.leader as number;
      const of = byNode.get(node) ?? { lanes: [], isSomeFull: false };
      byNode.set(node, of);
      if (lane.bytes < mostBytes) of.lanes.push(lane);
      else of.isSomeFull = true;
    }
    for (const [node, { lanes, isSomeFull }] of byNode) {
      if (lanes.length === 0 || this.#underWay.has(node)) continue;
      this.#underWay.set(node, performance.now());
      this.#fetch(node, topic.id, lanes, mostBytes, isSomeFull ? SHORT_WAIT_MS : WAIT_MS)
        .catch((error: unknown) => this.end({ kind: "failed", error }))
        .finally(() => {
          this.#underWay.delete(node);
          this.#fetchAll();
        });
    }
  }

  async #fetch(
    node: number,
    topicId: string,
    lanes: readonly KafkaLane[],
    mostBytes: number,
    waitMs: number,
  ): Promise<void> {
    const asked = new Map(lanes.map((lane) => [lane.partition, { lane, from: lane.position }]));
    const partitions = [...asked.values()].map(({ lane, from }) => ({
      partition: lane.partition,
      fetchOffset: BigInt(from),
      partitionMaxBytes: mostBytes,
      currentLeaderEpoch: -1,
      lastFetchedEpoch: -1,
    }));
    const options = {
      node,
      topics: [{ topicId, partitions }],
      minBytes: 1,
      maxBytes: MOST_BYTES / 2,
      maxWaitTime: waitMs,
    };
    const response = await fetchOnce(this.#consumer, options);
    if (this.#isOver) return;
    if (!this.hasRead) this.#keeping.failed(undefined);
    this.hasRead = true;
    for (const fetched of response.responses.flatMap((one) => one.partitions)) {
      const { lane, from } = asked.get(fetched.partitionIndex) ?? {};
      // Somebody else kept some of it meanwhile, or has the partition now: it is asked for anew.
      if (!lane || lane.isClosed || lane.position !== from) continue;
      if (fetched.errorCode !== OUT_OF_RANGE) this.#give(lane, fetched, from);
      else await this.#skip(lane);
    }
  }

  #give(lane: KafkaLane, fetched: Fetched, from: number): void {
    const { messages, next } = messagesOf(fetched, from);
    lane.end = Number(fetched.lastStableOffset >= 0n ? fetched.lastStableOffset : fetched.highWatermark);
    if (next > from) lane.add(messages, next);
  }

  /** Where there is no way on for one partition the others go on. */
  async #skip(lane: KafkaLane): Promise<void> {
    try {
      lane.add([], await firstOf(this.#consumer, this.#settings.topic, lane, this.#keeping));
    } catch (error) {
      lane.restsUntil = performance.now() + REST_MS;
      this.#keeping.failed(error);
    }
  }

  #tick(): void {
    const now = performance.now();
    for (const since of this.#underWay.values()) {
      if (now - since > SILENT_MS) this.end({ kind: "failed", error: new Error("the broker does not answer") });
    }
    // For those who watch its lag; nothing of ours goes by it.
    this.#commit().catch(() => undefined);
    if (this.#ticks++ % TELL_EVERY === 0) this.#refusals?.tellUntold();
    this.#fetchAll();
  }

  async #commit(): Promise<void> {
    const { topic } = this.#settings;
    const moved = [...this.#lanes.values()].filter(({ partition, kept }) => this.#committed.get(partition) !== kept);
    if (moved.length === 0 || !this.#consumer.isActive()) return;
    for (const { partition, kept } of moved) this.#committed.set(partition, kept);
    const offsets = moved.map(({ partition, kept }) => ({ topic, partition, offset: BigInt(kept), leaderEpoch: -1 }));
    await this.#consumer.commit({ offsets });
  }
}
