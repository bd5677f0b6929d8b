// Reminders that are due soon. What lies in the past by the time that a reminder is kept is not planned, and on a machine with every core
// busy many times over keeping one may take seconds.

/** `keep` answers with what is planned. It is asked with more time ahead until that is something; answers with the event's time. */
export async function keptAhead(
  { leadMs, beforeMs }: { leadMs: number; beforeMs: number },
  keep: (at: string) => Promise<{ plan: readonly { status: string }[] }>,
): Promise<string> {
  for (let ms = leadMs; ; ms *= 4) {
    const at = new Date(Date.now() + beforeMs + ms).toISOString();
    const { plan } = await keep(at);
    if (plan.length > 0) return at;
  }
}
