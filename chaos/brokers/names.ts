// What topics, groups and sinks of a run are called. A source is called as its topic.

export const TOPICS = ["orders", "alerts"] as const;
export const PARTITIONS = 4;
/** By topic. */
export const GROUPS: ReadonlyMap<string, string> = new Map(TOPICS.map((topic) => [topic, `carillon-${topic}`]));
/** A topic, an exchange and a queue, where facts go. */
export const FACTS = "facts";
