// What a provider says later.

/** What a provider tells later about a message it accepted. */
export type Report = {
  /** The receipt of the send it belongs to. */
  receipt: string;
  /** Unique among the provider's reports: the same one may come twice. */
  reportId: string;
  kind: "delivered" | "failed";
  at: Date;
  /** A hard bounce or a complaint: nothing more may go to this address. */
  suppress?: { address: string; why: "bounce" | "complaint" };
  reason?: string;
  code?: string;
};
