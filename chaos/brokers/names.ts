// What topics, groups and sinks of a run are called. A source is called as its topic.

export const topicsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `orders-${n + 1}`);
export const PARTITIONS = 4;
export const groupOf = (topic: string): string => `carillon-${topic}`;
/** A topic, an exchange and a queue, where facts go. */
export const FACTS = "facts";
