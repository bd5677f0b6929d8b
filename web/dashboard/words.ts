// Numbers, times and names, as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumFractionDigits: 4 });

export const count = (value: number | undefined): string => (value === undefined ? "–" : whole.format(value));
export const compact = (value: number): string => (value < 10_000 ? whole.format(value) : short.format(value));
export const money = (value: number): string => dollars.format(value);
export const percent = (part: number, of: number): string =>
  of === 0 ? "–" : `${(Math.floor((part / of) * 1000) / 10).toFixed(part === of ? 0 : 1)} %`;

/** What was reckoned instead of counted is marked. */
export const about = (figure: string, isEstimate: boolean): string => (isEstimate ? `≈ ${figure}` : figure);
/** What was counted no further than a bound: "1,000+". */
export const upTo = (value: number, bound: number): string => `${whole.format(value)}${value >= bound ? "+" : ""}`;

/** "1 notification", "12 notifications". */
export const many = (value: number, one: string, several = `${one}s`): string =>
  `${whole.format(value)} ${value === 1 ? one : several}`;

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** The two largest units: "2 h 5 min". */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const at = UNITS.findIndex(([unit]) => ms >= unit);
  const [unit, name] = UNITS[at] as [number, string];
  const [less, lessName] = UNITS[at + 1] ?? [0, ""];
  const rest = less === 0 ? 0 : Math.floor((ms % unit) / less);
  return `${Math.floor(ms / unit)} ${name}${rest > 0 ? ` ${rest} ${lessName}` : ""}`;
}

export function ago(instant: string, nowMs: number = Date.now()): string {
  const ms = nowMs - Date.parse(instant);
  if (Math.abs(ms) < 1_500) return "just now";
  // To the second, and beyond a minute to the largest unit.
  const told = duration(Math.round(Math.abs(ms) / 1_000) * 1_000)
    .replace(".0", "")
    .replace(/^(\d+ \D+) \d+ \D+$/, "$1");
  return ms > 0 ? `${told} ago` : `in ${told}`;
}

const clock = new Intl.DateTimeFormat("en-GB", {
  ...{ year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" },
  timeZoneName: "short",
});
export const exact = (instant: string): string => clock.format(new Date(instant));

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const timeOfDay = (instant: string): string => time.format(new Date(instant));

/** An address and the like: who a notification is for. */
export function recipientOf(recipient: { [field: string]: unknown } = {}): string {
  const { email, phone, userId, slackChannel, webhookUrl, deviceTokens } = recipient;
  const device = Array.isArray(deviceTokens) ? deviceTokens[0] : undefined;
  const found = [email, phone, webhookUrl, slackChannel, userId, device].find((value) => typeof value === "string");
  return typeof found === "string" ? found : "–";
}
