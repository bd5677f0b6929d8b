// What happens around callbacks becomes metrics and log lines here. Where they go, and what they tell, never gets this far.

import type { CallbackMetrics } from "./callback-metrics.ts";
import type { Logger } from "./log.ts";

export class CallbackFacts {
  readonly #log: Logger;
  readonly #figures: CallbackMetrics;

  constructor(log: Logger, figures: CallbackMetrics) {
    this.#log = log;
    this.#figures = figures;
  }

  /** What was to be told cannot be stored: nobody is told. */
  refused(tenant: number, webhookId: string, error: unknown): void {
    this.#log.error({ err: error, tenant, webhookId }, "a callback cannot be made");
  }

  /** The feed has been forgotten before it was read. */
  missed(reason: string): void {
    this.#log.error({ reason }, "callbacks were too far behind: what the feed no longer has is told to nobody");
  }

  followedApart(tenant: number): void {
    this.#log.warn(
      { tenant },
      "a tenant has more callbacks than can be made in time: it is followed apart, and the others go on",
    );
  }

  made(count: number): void {
    this.#figures.made.inc(count);
  }

  roundFailed(error: unknown): void {
    this.#log.warn({ err: error }, "could not follow what callbacks are about");
  }

  endpointDisabled(tenant: number, endpoint: string, reason: string): void {
    this.#figures.disabled.inc();
    this.#log.warn({ tenant, endpoint, reason }, "an endpoint is disabled");
  }

  /** How an endpoint fares, or that the next of a line has its turn: found out later. */
  unnoted(error: unknown): void {
    this.#log.warn({ err: error }, "what follows from a callback was not written");
  }
}
