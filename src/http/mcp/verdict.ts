// From what was found to a sentence, and to what can be done.

export type Findings = {
  notificationId: string;
  status: string;
  channel: string;
  priority: string;
  enqueuedAt: string;
  scheduledFor?: string;
  attempts: number;
  lastError?: string;
  lastOutcome?: string;
  suppressed: string | false;
  paused: { kind: string; name: string; reason: string; until?: string }[];
  breakers: { provider: string; state: string }[];
  isUntaken: boolean;
};
export type Verdict = { sentence: string; advice: string[] };

const WAITS = ["pending", "queued", "processing"];

export function verdictOf(found: Findings): Verdict {
  const advice = WAITS.includes(found.status) ? adviceForWaiting(found) : adviceForEnded(found);
  const sentence = `Notification ${found.notificationId} (${found.channel}) is ${found.status}: ${meaningOf(found)}.`;
  return { sentence, advice };
}

function meaningOf({ status, attempts, lastError, lastOutcome, scheduledFor, suppressed }: Findings): string {
  const said = lastError
    ? `; the last error was ${lastError}`
    : lastOutcome
      ? `; the last attempt was ${lastOutcome}`
      : "";
  switch (status) {
    case "pending":
      return `it waits until ${scheduledFor ?? "its time"}, after ${attempts} attempts${said}`;
    case "queued":
      return `it waits for its turn, after ${attempts} attempts${said}`;
    case "processing":
      return "a worker is sending it now";
    case "sent":
      return "the provider took it, and has not reported what became of it";
    case "delivered":
      return "it arrived";
    case "failed":
      return `it failed for good after ${attempts} attempts${said}`;
    case "suppressed":
      return `nothing is sent to that address${suppressed ? ` (${suppressed})` : ", or was not at that time"}`;
    case "expired":
      return `its time was over before it could be sent${said}`;
    case "ambiguous":
      return `the provider's answer was lost: it may have been sent, or not${said}`;
    default:
      return `it ended${said}`;
  }
}

function adviceForWaiting({ paused, breakers, isUntaken, lastError }: Findings): string[] {
  const pauses = paused.map(
    ({ kind, name, reason, until }) =>
      `The ${kind} ${name} is paused (${reason})${until ? ` until ${until}` : ""}: it goes on when somebody resumes it (set_pause).`,
  );
  const open = breakers
    .filter(({ state }) => state !== "closed")
    .map(
      ({ provider, state }) =>
        `The breaker of ${provider} is ${state}: the provider does not answer. It is asked again by itself; look at the provider.`,
    );
  return [
    ...pauses,
    ...open,
    ...(isUntaken ? ["No living worker takes it: start one for its lane, channel, tenant or region."] : []),
    ...(pauses.length + open.length === 0 && !isUntaken
      ? [
          lastError
            ? "It is tried again by itself. Mend what the error says."
            : "Nothing holds it up: it is sent in its turn.",
        ]
      : []),
  ];
}

function adviceForEnded({ status, suppressed, breakers }: Findings): string[] {
  const lift = suppressed
    ? [
        `The address is suppressed (${suppressed}). If that is over, lift it (lift_suppression); then send it again (retry_notification).`,
      ]
    : [];
  const open = breakers
    .filter(({ state }) => state === "open")
    .map(({ provider }) => `The breaker of ${provider} is open: sending again now will have to wait for it.`);
  switch (status) {
    case "failed":
    case "ambiguous":
    case "expired":
    case "cancelled":
      return [...lift, ...open, "Mend what the error says, then send it again (retry_notification)."];
    case "suppressed":
      return lift.length > 0 ? lift : ["The address is no longer suppressed: send it anew."];
    case "sent":
      return ["Ask the recipient to look into spam, and the provider's own log for the message."];
    case "delivered":
      return ["It arrived at the recipient's server or device: look there."];
    default:
      return lift;
  }
}
