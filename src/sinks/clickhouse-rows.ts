// A fact as a line of tab-separated values, which ClickHouse reads fastest and every version of it alike; and the columns that these are.

import type { Told } from "./sink.ts";

/** `plain`: for servers older than 21. */
export type Dialect = "modern" | "plain";

export type Column = {
  name: string;
  /** Words of which there are few are LowCardinality where the server has that. */
  type: string | { [dialect in Dialect]: string };
  /** The first version of the schema that has it. */
  since: number;
  /** Undefined: the server makes it of others. */
  value?: (told: Told, what: Wanted) => string | number | undefined;
};

/** What may tell who somebody is goes out only where it is asked for. */
export type Wanted = { users: boolean; errors: boolean };

const WORD = { modern: "LowCardinality(String)", plain: "String" };

/** In this order rows are sent. Only ever added to, each with a greater `since`. */
export const COLUMNS: readonly Column[] = [
  { name: "tenant", type: WORD, since: 1, value: ({ tenant }) => tenant },
  { name: "notification_id", type: "UUID", since: 1, value: ({ fact }) => fact.notificationId },
  { name: "number", type: "UInt64", since: 1, value: ({ fact }) => fact.number },
  { name: "type", type: WORD, since: 1, value: ({ fact }) => fact.type },
  { name: "at_ms", type: "Int64", since: 1, value: ({ fact }) => fact.at.getTime() },
  {
    name: "at",
    type: { modern: "DateTime64(3, 'UTC')", plain: "DateTime('UTC')" },
    since: 1,
  },
  { name: "event", type: WORD, since: 1, value: ({ body }) => body.event ?? "" },
  { name: "from_status", type: WORD, since: 1, value: ({ body }) => body.from ?? "" },
  { name: "to_status", type: WORD, since: 1, value: ({ body }) => body.to ?? "" },
  { name: "channel", type: WORD, since: 1, value: ({ body }) => body.channel ?? "" },
  { name: "priority", type: WORD, since: 1, value: ({ body }) => body.priority ?? "" },
  { name: "provider", type: WORD, since: 1, value: ({ body }) => body.provider ?? "" },
  { name: "outcome", type: WORD, since: 1, value: ({ body }) => body.outcome ?? "" },
  { name: "category", type: WORD, since: 1, value: ({ body }) => wordOf(body.detail?.category) },
  { name: "code", type: WORD, since: 1, value: ({ body }) => wordOf(body.detail?.code) },
  { name: "attempt", type: "UInt16", since: 1, value: ({ body }) => body.attempt ?? 0 },
  { name: "latency_ms", type: "Nullable(Float32)", since: 1, value: ({ body }) => body.latencyMs },
  { name: "cost", type: "Nullable(Float32)", since: 1, value: ({ body }) => body.cost },
  {
    name: "accepted_ms",
    type: "Nullable(Int64)",
    since: 1,
    value: ({ body }) => body.acceptedAt && Date.parse(body.acceptedAt),
  },
  { name: "user_id", type: "String", since: 1, value: ({ body }, { users }) => (users ? (body.userId ?? "") : "") },
  { name: "error", type: "String", since: 1, value: ({ body }, { errors }) => (errors ? (body.error ?? "") : "") },
];

/** A provider's own code, if it is one and not a sentence, in which anything may stand. */
const wordOf = (code: unknown): string => {
  const word = typeof code === "string" || typeof code === "number" ? String(code) : "";
  return /^[\w.:#-]{1,64}( [\w.:#-]{1,32})?$/.test(word) ? word : "";
};

export type RowsOf = (facts: readonly Told[]) => string;

export function rowsBy(columns: readonly Column[], wanted: Wanted): RowsOf {
  const values = columns.flatMap(({ value }) => (value ? [value] : []));
  return (facts) => {
    let rows = "";
    for (const told of facts) {
      let between = "";
      for (const value of values) {
        rows += between + fieldOf(value(told, wanted));
        between = "\t";
      }
      rows += "\n";
    }
    return rows;
  };
}

const SPECIAL = /[\\\t\n\r]/;
const ESCAPES: { [character: string]: string } = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function fieldOf(value: string | number | undefined): string {
  if (value === undefined) return "\\N";
  if (typeof value === "number" || !SPECIAL.test(value)) return String(value);
  return value.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}
