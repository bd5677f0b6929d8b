// One stream for all tabs. Whoever holds the lock leads: it reads the stream and passes on what comes. When its tab
// goes, the browser gives the lock to the next in line, who goes on from the last event that it was passed.
//
// A browser keeps six connections per host over HTTP/1.1: seven tabs with a stream each would block the whole site.

export type ShareOptions<Message> = {
  name: string;
  /** Leads until the promise settles; the lock is free again afterwards. */
  lead: (signal: AbortSignal) => Promise<void>;
  /** Another tab leads. */
  onFollow: () => void;
  onMessage: (message: Message) => void;
};

export type Share<Message> = { tell(message: Message): void; stop(): void };

export function share<Message>({ name, lead, onFollow, onMessage }: ShareOptions<Message>): Share<Message> {
  const stopping = new AbortController();
  const { signal } = stopping;
  // Locks exist only in secure contexts. Without them every tab reads a stream of its own and has nothing to tell.
  const locks: LockManager | undefined = navigator.locks;
  const channel = locks ? new BroadcastChannel(name) : undefined;
  if (channel) channel.onmessage = ({ data }) => onMessage(data);

  async function elect(): Promise<void> {
    // Never before share() has returned: leading means telling.
    await null;
    if (!locks) return lead(signal);
    const isOver = await locks.request(name, { ifAvailable: true }, async (lock) => {
      if (lock && !signal.aborted) await lead(signal);
      return lock !== null;
    });
    if (isOver || signal.aborted) return;
    onFollow();
    await locks.request(name, { signal }, () => lead(signal));
  }
  elect().catch(() => {
    // Stopped while in line, or the browser refuses locks here, as in a sandboxed frame: then we read on our own.
    if (!signal.aborted) void lead(signal);
  });

  return {
    tell: (message) => channel?.postMessage(message),
    stop() {
      stopping.abort();
      channel?.close();
    },
  };
}
